-- Further statements over the people, written before it was tried which of them are compiled:
-- by an engineer, by a tool for reports, by a statistician. DuckDB is asked what "duckdb:" says.

-- data engineer
SELECT p.state, COUNT(*) AS n, COUNT(*) FILTER (WHERE p.smoker) AS smokers FROM people AS p GROUP BY p.state HAVING COUNT(*) > 100 ORDER BY smokers DESC NULLS LAST;
WITH w AS (SELECT state, sex, COUNT(*) AS n FROM people GROUP BY state, sex) SELECT state, sex, n, n * 1.0 / SUM(n) OVER (PARTITION BY state) AS share FROM w ORDER BY state, sex;
WITH s AS (SELECT state, AVG(CASE WHEN smoker THEN 1 ELSE 0 END) AS rate FROM people GROUP BY state) SELECT state, rate FROM s WHERE rate > 0.2 ORDER BY rate DESC;
SELECT region, education, COUNT(*) FROM people LEFT JOIN regions USING (state) GROUP BY region, education;
SELECT r.region, AVG(p.children) FROM people p JOIN regions r ON p.state = r.state GROUP BY r.region;
SELECT COUNT(*) FROM people WHERE state IN (SELECT state FROM regions WHERE region = 'northeast') AND age >= 65;
SELECT DATE_TRUNC('year', admitted) AS y, COUNT(*) FROM people WHERE admitted IS NOT NULL GROUP BY y;
SELECT EXTRACT(month FROM admitted) AS m, COUNT(*) AS n FROM people WHERE EXTRACT(year FROM admitted) = 2024 GROUP BY m HAVING COUNT(*) > 50 ORDER BY m;
SELECT COALESCE(CAST(EXTRACT(year FROM admitted) AS VARCHAR), 'never') AS y, COUNT(*) FROM people GROUP BY y;
SELECT state, education, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY state ORDER BY COUNT(*) DESC) AS rn FROM people GROUP BY state, education;
SELECT COUNT(*) FROM people WHERE (age > 30 AND NOT smoker) IS NOT FALSE;
SELECT COUNT(*) FROM people WHERE smoker IS NOT DISTINCT FROM NULL;
SELECT COUNT(*) FROM people WHERE UPPER(education) LIKE '%COLLEGE%' OR education SIMILAR TO '(grad)%';
-- duckdb: SELECT UPPER(education[1]) || LOWER(education[2:]) AS e, COUNT(*) FROM people GROUP BY e;
SELECT INITCAP(education) AS e, COUNT(*) FROM people GROUP BY e;
SELECT CONCAT_WS('/', sex, marital) AS k, COUNT(*) FROM people GROUP BY k ORDER BY k;
SELECT sex, COUNT(*) FILTER (WHERE age < 18) AS minors, COUNT(*) FILTER (WHERE age >= 18) AS adults FROM people WHERE state = 'NY' GROUP BY sex;
SELECT CASE WHEN age < 18 THEN 0 WHEN age < 65 THEN 1 ELSE 2 END AS band, sex, COUNT(*) AS n FROM people GROUP BY CUBE (band, sex);
SELECT COUNT(*) FROM people WHERE visits >= 3 OR (smoker AND age > 60);
SELECT sum(visits) FILTER (WHERE insurance IS NULL) AS uninsured_visits, sum(visits) AS all_visits FROM people;
SELECT age - age % 5 AS age5, sex, COUNT(*) FROM people GROUP BY 1, 2 ORDER BY 1, 2;
SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY CASE WHEN state = 'NY' THEN 0 ELSE 1 END, n DESC;
-- refused: RANDOM() is not supported
SELECT state, COUNT(*) AS n FROM people WHERE random() < 0.1 GROUP BY state;
-- refused: CURRENT_DATE is not supported
SELECT COUNT(*) FROM people WHERE admitted > CURRENT_DATE - INTERVAL '1 year';
-- refused: TABLESAMPLE is not supported
SELECT COUNT(*) FROM people TABLESAMPLE BERNOULLI (10);
-- refused: ARRAY_AGG() is not supported
SELECT state, array_agg(age) FROM people GROUP BY state;
-- refused: JOIN of the table with itself is not supported
SELECT a.state, COUNT(*) FROM people a JOIN people b ON a.state = b.state GROUP BY a.state;
SELECT children, COUNT(*) AS n FROM people GROUP BY children HAVING children > 2;
SELECT children, COUNT(*) AS n FROM people GROUP BY children HAVING children > 2 AND COUNT(*) > 10 ORDER BY children;
SELECT state, sex, COUNT(*) FROM people GROUP BY (state, sex);
SELECT state, age > 40 AS older, COUNT(*) FROM people GROUP BY state, age > 40;
SELECT COUNT(*) FROM people WHERE income IS NULL AND insurance IS NOT NULL;
-- refused: ORDER BY or LIMIT after this UNION ALL is not supported
SELECT COUNT(*) n FROM people WHERE sex = 'F' UNION ALL SELECT COUNT(*) FROM people WHERE sex = 'M' LIMIT 1;
SELECT state, n FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) QUALIFY RANK() OVER (ORDER BY n DESC) <= 2;
SELECT max(n) FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state);
-- BI
SELECT "people"."state" AS "State", COUNT("people"."income") AS "Count of income" FROM "people" GROUP BY "people"."state";
SELECT CASE WHEN income IS NULL THEN 'unknown' WHEN income < 20000 THEN '<20k' WHEN income < 50000 THEN '20-50k' ELSE '50k+' END AS "Income band", COUNT(*) AS "People", COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS "Share" FROM people GROUP BY 1;
SELECT sex AS "Sex", COALESCE(SUM(CASE WHEN smoker THEN 1 END), 0) AS "Smokers", COALESCE(SUM(CASE WHEN NOT smoker THEN 1 END), 0) AS "Non-smokers", SUM(CASE WHEN smoker IS NULL THEN 1 ELSE 0 END) AS "Unknown" FROM people GROUP BY sex;
SELECT state, COUNT(*) AS c, COUNT(*) FILTER (WHERE marital = 'married') AS married, COUNT(*) FILTER (WHERE marital = 'married') * 100 / COUNT(*) AS pct_int FROM people GROUP BY state;
SELECT state, CAST(ROUND(100.0 * SUM(CASE WHEN children > 0 THEN 1 ELSE 0 END) / COUNT(*), 0) AS INTEGER) AS pct_parents FROM people GROUP BY state;
SELECT IF(smoker, 'smoker', 'other') AS s, COUNT(*) FROM people GROUP BY s;
SELECT CASE smoker WHEN TRUE THEN 'yes' WHEN FALSE THEN 'no' ELSE 'n/a' END AS s, COUNT(*) AS n FROM people GROUP BY s;
-- duckdb: SELECT CASE sex WHEN 'F' THEN 'Female' WHEN 'M' THEN 'Male' END AS g, COUNT(*) FROM people GROUP BY g;
SELECT DECODE(sex, 'F', 'Female', 'M', 'Male') AS g, COUNT(*) FROM people GROUP BY g;
SELECT COUNT(*) AS total, SUM(CASE WHEN age >= 65 THEN 1 ELSE 0 END) AS seniors, SUM(CASE WHEN age >= 65 THEN 1 ELSE 0 END) / CAST(COUNT(*) AS DECIMAL(10, 2)) AS senior_share FROM people;
SELECT state, COUNT(*) FROM people WHERE state IN ('NY', 'NJ', 'ZZ') GROUP BY state;
SELECT "q"."band", "q"."n" FROM (SELECT FLOOR("age" / 20) AS "band", COUNT(*) AS "n" FROM "people" GROUP BY FLOOR("age" / 20)) AS "q" ORDER BY "q"."band" ASC;
-- duckdb: SELECT sex, AVG(age) "Average age", AVG(visits) "Average visits" FROM people GROUP BY ROLLUP (sex);
SELECT sex, AVG(age) "Average age", AVG(visits) "Average visits" FROM people GROUP BY sex WITH ROLLUP;
SELECT state, SUM(visits) AS visits, SUM(visits) * 1.0 / SUM(SUM(visits)) OVER () AS share FROM people GROUP BY state ORDER BY visits DESC;
-- refused: a single row decides it
SELECT COUNT(*) AS "n", AVG(visits) AS "mean", MIN(visits) AS "min" FROM people;
SELECT SUM(income) FROM people WHERE income < 250000;
SELECT NULLIF(insurance, 'public') AS i, COUNT(*) FROM people GROUP BY i;
-- statistician
SELECT education, AVG(income) AS m, STDDEV(income) AS s, COUNT(income) AS n FROM people WHERE income < 250000 GROUP BY education;
SELECT CORR(age, visits) AS r, CORR(children, visits) AS r2 FROM people;
SELECT sex, CORR(age, children) AS r FROM people GROUP BY sex;
SELECT REGR_SLOPE(visits, age) AS b, REGR_R2(visits, age) AS r2 FROM people;
SELECT (COUNT(*) * SUM(age * visits) - SUM(age) * SUM(visits)) * 1.0 / (COUNT(*) * SUM(age * age) - SUM(age) * SUM(age)) AS slope FROM people;
SELECT AVG(visits) FILTER (WHERE smoker) - AVG(visits) FILTER (WHERE NOT smoker) AS diff, AVG(visits) FILTER (WHERE smoker) / AVG(visits) FILTER (WHERE NOT smoker) AS ratio FROM people;
SELECT state, (AVG(age) - 40) / STDDEV(age) AS z FROM people GROUP BY state;
SELECT MEDIAN(age) FILTER (WHERE sex = 'F') AS f, MEDIAN(age) FILTER (WHERE sex = 'M') AS m FROM people;
SELECT MEDIAN(age) FILTER (WHERE sex = 'F') - MEDIAN(age) FILTER (WHERE sex = 'M') AS gap FROM people;
SELECT QUANTILE(age, 0.5), QUANTILE_CONT(visits, 0.95) FROM people;
-- refused: a quantile without one constant level is not supported
SELECT state, PERCENTILE_CONT(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY age) FROM people GROUP BY state;
-- refused: GROUP BY NTILE(4) OVER (ORDER BY age) is not supported; group by attributes
SELECT NTILE(4) OVER (ORDER BY age) AS q, COUNT(*) FROM people GROUP BY q;
-- duckdb: SELECT cast(floor(income / 10000) as int) + 1 AS b, COUNT(*) FROM people WHERE income < 100000 GROUP BY b;
SELECT WIDTH_BUCKET(income, 0, 100000, 10) AS b, COUNT(*) FROM people WHERE income < 100000 GROUP BY b;
SELECT FLOOR(income / 10000) * 10000 AS bin, COUNT(*) AS n FROM people WHERE income < 100000 GROUP BY bin ORDER BY bin;
SELECT FLOOR(height / 5) * 5 AS h, COUNT(*) FROM people WHERE height >= 140 AND height < 200 GROUP BY h ORDER BY h;
SELECT visits, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS p FROM people GROUP BY visits ORDER BY visits;
SELECT sex, smoker, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY sex) AS row_pct, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY smoker) AS col_pct FROM people GROUP BY sex, smoker;
SELECT SQRT(AVG(visits * visits) - AVG(visits) * AVG(visits)) AS sd FROM people;
SELECT AVG(weight) / POWER(AVG(height) / 100, 2) AS bmi_of_means FROM people;
-- refused: weight / POWER(height / 100, 2) is not constant on the cells of 'weight', which are intervals
SELECT AVG(weight / POWER(height / 100, 2)) AS mean_bmi FROM people;
SELECT 1.0 * COUNT(*) FILTER (WHERE smoker AND sex = 'M') / COUNT(*) FILTER (WHERE sex = 'M') - 1.0 * COUNT(*) FILTER (WHERE smoker AND sex = 'F') / COUNT(*) FILTER (WHERE sex = 'F') AS risk_difference FROM people;
SELECT (SUM(CASE WHEN smoker AND sex = 'M' THEN 1 ELSE 0 END) * 1.0 / SUM(CASE WHEN NOT smoker AND sex = 'M' THEN 1 ELSE 0 END)) / (SUM(CASE WHEN smoker AND sex = 'F' THEN 1 ELSE 0 END) * 1.0 / SUM(CASE WHEN NOT smoker AND sex = 'F' THEN 1 ELSE 0 END)) AS odds_ratio FROM people;
SELECT COUNT(*) FILTER (WHERE age BETWEEN 0 AND 14) + COUNT(*) FILTER (WHERE age >= 65) AS dependants, 100.0 * (COUNT(*) FILTER (WHERE age <= 14) + COUNT(*) FILTER (WHERE age >= 65)) / COUNT(*) FILTER (WHERE age BETWEEN 15 AND 64) AS dependency_ratio FROM people;
SELECT STDDEV_POP(age), VAR_POP(visits), VAR_SAMP(children) FROM people WHERE sex = 'F';
-- refused: ENTROPY() is not supported
SELECT ENTROPY(state) FROM people;
SELECT state, SUM(visits) / SUM(children) AS per_child FROM people GROUP BY state;
SELECT AVG(age) AS mean_age, AVG(age) - MEDIAN(age) AS skew_gap FROM people;
SELECT sex, SUM(CASE WHEN age < 30 THEN visits ELSE 0 END) * 1.0 / NULLIF(SUM(CASE WHEN age < 30 THEN 1 ELSE 0 END), 0) AS young_mean FROM people GROUP BY sex;
-- refused: income > 50000 cuts through the cell [50000, 60000) of 'income', which is counted as one
SELECT COUNT(*) FILTER (WHERE income > 50000) / COUNT(income)::FLOAT AS p FROM people;
SELECT ABS(AVG(age) FILTER (WHERE sex = 'F') - AVG(age) FILTER (WHERE sex = 'M')) AS gap FROM people;
