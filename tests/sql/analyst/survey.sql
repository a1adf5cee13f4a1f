-- Statements over the answers to a survey, in the dialects and habits of several databases and tools.

-- dialect: spark
SELECT region, COUNT(*) AS n, AVG(q4 * weight) AS v FROM survey.responses GROUP BY region;
-- dialect: spark
SELECT region, SUM(q4 * weight) / SUM(weight) AS weighted_mean FROM survey.responses GROUP BY region;
-- dialect: spark
SELECT date_format(answered, 'yyyy-MM') AS ym, COUNT(*) AS n FROM responses GROUP BY date_format(answered, 'yyyy-MM');
-- dialect: spark
-- duckdb: SELECT DAYOFWEEK(answered) + 1 AS d, COUNT(*) AS n FROM responses GROUP BY d;
SELECT dayofweek(answered) AS d, COUNT(*) AS n FROM responses GROUP BY dayofweek(answered);
-- dialect: spark
SELECT count_if(q1 = 'agree') / count(1) AS share FROM responses;
-- dialect: spark
SELECT region, percentile_approx(q4, 0.5) AS med FROM responses GROUP BY region;
-- dialect: spark
-- duckdb: SELECT DATE_TRUNC('month', answered) AS m, COUNT(*) AS n FROM responses GROUP BY m;
SELECT trunc(answered, 'MM') AS m, COUNT(*) AS n FROM responses GROUP BY trunc(answered, 'MM');
-- dialect: spark
SELECT datediff('2024-06-30', answered) AS d, COUNT(*) AS n FROM responses WHERE answered >= '2024-06-01' GROUP BY 1;
-- dialect: spark
SELECT nvl(income_band, 'no answer') AS band, COUNT(*) AS n FROM responses GROUP BY 1;
-- dialect: spark
SELECT region, COUNT(*) AS n, dense_rank() OVER (ORDER BY COUNT(*) DESC) AS r FROM responses GROUP BY region;
-- dialect: postgres
SELECT q1, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM responses GROUP BY q1 ORDER BY n DESC;
-- dialect: postgres
SELECT age_group, q1, COUNT(*)::numeric / SUM(COUNT(*)) OVER (PARTITION BY age_group) AS share FROM responses GROUP BY age_group, q1;
-- dialect: postgres
SELECT region, COUNT(*) FILTER (WHERE q4 >= 9) * 100.0 / COUNT(q4) - COUNT(*) FILTER (WHERE q4 <= 6) * 100.0 / COUNT(q4) AS nps FROM responses GROUP BY region;
-- dialect: postgres
SELECT q1, RANK() OVER w AS r, COUNT(*) AS n FROM responses GROUP BY q1 WINDOW w AS (ORDER BY COUNT(*) DESC);
-- dialect: postgres
SELECT region, q1, COUNT(*) AS n FROM responses WHERE region IS NOT NULL AND q1 IS NOT NULL GROUP BY GROUPING SETS ((region, q1), (region), ());
-- dialect: postgres
SELECT to_char(answered, 'IYYY-IW') AS wk, COUNT(*) AS n FROM responses GROUP BY 1;
-- dialect: postgres
SELECT CASE q1 WHEN 'agree' THEN 'yes' WHEN 'disagree' THEN 'no' ELSE 'other' END AS a, AVG(q4) AS m FROM responses GROUP BY 1;
-- dialect: postgres
-- refused: BOOL_OR() is not supported; count the rows with COUNT_IF(condition)
SELECT BOOL_OR(q4 = 10) AS any_ten FROM responses;
-- dialect: mysql
-- duckdb: SELECT region, AVG(CAST(q4 >= 9 AS INT)) AS promoters FROM responses GROUP BY region;
SELECT region, AVG(q4 >= 9) AS promoters FROM responses GROUP BY region;
-- dialect: mysql
-- refused: GROUP_CONCAT() is not supported; rows are never listed; GROUP BY the column
SELECT age_group, GROUP_CONCAT(q1) FROM responses GROUP BY age_group;
-- dialect: mysql
-- duckdb: SELECT ISODOW(answered) - 1 AS d, COUNT(*) AS n FROM responses GROUP BY d;
SELECT WEEKDAY(answered) AS d, COUNT(*) AS n FROM responses GROUP BY d;
-- dialect: mysql
-- duckdb: SELECT CASE q5 WHEN 1 THEN 'low' WHEN 2 THEN 'middle' WHEN 3 THEN 'high' END AS k, COUNT(*) AS n FROM responses GROUP BY k;
SELECT ELT(q5, 'low', 'middle', 'high') AS k, COUNT(*) AS n FROM responses GROUP BY k;
-- dialect: snowflake
SELECT region, AVG(q4) AS m, AVG(q4) - AVG(AVG(q4)) OVER () AS gap FROM responses GROUP BY region;
-- dialect: snowflake
SELECT region, MEDIAN(q4) AS med, STDDEV(q4) AS sd FROM responses GROUP BY region ORDER BY med DESC NULLS LAST;
-- dialect: snowflake
SELECT CASE WHEN GROUPING(region) = 1 THEN 'all' ELSE region END AS region, COUNT(*) AS n FROM responses GROUP BY ROLLUP (region);
-- dialect: snowflake
SELECT age_group, SUM(weight) AS w, SUM(weight * q5) / SUM(weight) AS m FROM survey_db.raw.responses GROUP BY age_group;
-- dialect: bigquery
SELECT q1, COUNT(*) AS n FROM `survey`.responses WHERE region != "north" GROUP BY q1 ORDER BY n DESC;
-- dialect: bigquery
SELECT region, COUNTIF(q4 BETWEEN 9 AND 10) - COUNTIF(q4 <= 6) AS net FROM survey.responses GROUP BY region;
-- dialect: bigquery
SELECT PARSE_DATE('%Y%m%d', '20240601') <= answered AS late, COUNT(*) AS n FROM responses GROUP BY late;
-- dialect: tsql
SELECT TOP 1 q1, COUNT(*) AS n FROM dbo.responses GROUP BY q1 ORDER BY COUNT(*) DESC;
-- dialect: tsql
-- duckdb: SELECT region, CASE q5 WHEN 1 THEN 'low' WHEN 2 THEN 'middle' WHEN 3 THEN 'high' END AS k, COUNT(*) AS n FROM responses GROUP BY region, k;
SELECT region, CHOOSE(q5, 'low', 'middle', 'high') AS k, COUNT(*) AS n FROM responses GROUP BY region, CHOOSE(q5, 'low', 'middle', 'high');
-- dialect: tsql
SELECT [region], COUNT_BIG(*) AS n FROM [responses] WHERE [q1] <> 'agree' GROUP BY [region];
SELECT region, COUNT(*) AS n, SUM(weight) AS w, SUM(weight) * SUM(weight) / COUNT(*) AS effective FROM responses GROUP BY region;
-- duckdb: SELECT age_group, q1, COUNT(*) AS n FROM responses GROUP BY ALL HAVING COUNT(*) > 10;
SELECT age_group, q1, COUNT(*) AS n FROM responses GROUP BY ALL QUALIFY COUNT(*) > 10;
SELECT answered, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY answered ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS around FROM responses GROUP BY answered;
SELECT MODE(q1) FROM responses;
SELECT q1, COUNT(*) AS n FROM responses GROUP BY q1 HAVING COUNT(*) > (SELECT COUNT(*) / 10 FROM responses);
PIVOT responses ON q1 USING COUNT(*) GROUP BY age_group;
-- duckdb: SELECT region, SUM(weight * q4) / NULLIF(SUM(weight), 0) AS wmean FROM responses WHERE q4 IS NOT NULL GROUP BY region;
-- dialect: snowflake
SELECT region, SUM(weight * q4) / NULLIF(SUM(weight), 0) AS wmean FROM responses WHERE q4 IS NOT NULL GROUP BY region;
-- duckdb: SELECT age_group, COALESCE(region, 'unknown') AS region_name, COUNT(*) AS n FROM responses GROUP BY 1, 2;
-- dialect: bigquery
SELECT age_group, IFNULL(region, 'unknown') AS region_name, COUNT(*) AS n FROM responses GROUP BY 1, 2;
-- duckdb: SELECT age_group, (count(*) FILTER (WHERE q4 >= 9) - count(*) FILTER (WHERE q4 <= 6)) * 100.0 / count(q4) AS nps FROM responses GROUP BY age_group;
-- dialect: postgres
SELECT age_group, (count(*) FILTER (WHERE q4 >= 9) - count(*) FILTER (WHERE q4 <= 6)) * 100.0 / count(q4) AS nps FROM responses GROUP BY age_group;
SELECT q1, q4, COUNT(*) AS n FROM responses WHERE q1 IS NOT NULL GROUP BY q1, q4 ORDER BY n DESC LIMIT 10;
-- duckdb: SELECT age_group, COUNT_IF(q1 = 'agree') AS agrees, COUNT_IF(q1 IS NULL) AS missing FROM responses GROUP BY age_group;
-- dialect: mysql
SELECT age_group, SUM(q1 = 'agree') AS agrees, SUM(q1 <=> NULL) AS missing FROM responses GROUP BY age_group;
SELECT age_group, QUANTILE_DISC(q4, 0.25) AS p25, MEDIAN(q4) AS p50, QUANTILE_DISC(q4, 0.75) AS p75 FROM responses GROUP BY age_group;
-- duckdb: SELECT region, COUNT(CASE WHEN q5 = 3 THEN 1 END) * 1.0 / COUNT(*) AS top FROM responses GROUP BY region;
-- dialect: tsql
SELECT region, COUNT(CASE WHEN q5 = 3 THEN 1 END) * 1.0 / COUNT(*) AS top FROM responses GROUP BY region;
SELECT DATE_TRUNC('week', answered) AS week, AVG(q4) AS mean, COUNT(q4) AS n FROM responses GROUP BY week ORDER BY week;
SELECT income_band, MODE(q1) AS opinion FROM responses WHERE income_band IS NOT NULL GROUP BY income_band ORDER BY income_band;
-- duckdb: SELECT region, quantile_cont(q4, 0.9) AS p90 FROM responses GROUP BY region;
-- dialect: spark
SELECT region, approx_percentile(q4, 0.9) AS p90 FROM responses GROUP BY region;
-- duckdb: SELECT q1, round(avg(q4), 2) AS mean, round(stddev(q4), 2) AS sd, count(q4) AS n FROM responses GROUP BY q1;
-- dialect: postgres
SELECT q1, round(avg(q4), 2) AS mean, round(stddev(q4), 2) AS sd, count(q4) AS n FROM responses GROUP BY q1;
-- duckdb: SELECT age_group, q1, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (PARTITION BY age_group) AS pct FROM responses GROUP BY age_group, q1;
-- dialect: tsql
SELECT age_group, q1, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (PARTITION BY age_group) AS pct FROM responses GROUP BY age_group, q1;
-- duckdb: SELECT region, COUNT_IF(q1 = 'agree') / COUNT(q1) AS share FROM responses GROUP BY region HAVING share > 0.2;
-- dialect: snowflake
SELECT region, COUNT_IF(q1 = 'agree') / COUNT(q1) AS share FROM responses GROUP BY region HAVING share > 0.2;
SELECT region, SUM(weight) AS w, SUM(CASE WHEN q1 = 'agree' THEN weight ELSE 0 END) / SUM(weight) AS p FROM responses GROUP BY region;
SELECT 'all' AS who, COUNT(*) AS n FROM responses UNION ALL SELECT 'agree', COUNT(*) FROM responses WHERE q1 = 'agree';
-- refused: no attribute is called 'north'
SELECT age_group, COUNT(*) AS n FROM responses WHERE region = "north" GROUP BY age_group;
SELECT q5, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY q5) AS cum FROM responses GROUP BY q5;
SELECT MEDIAN(q4) - AVG(q4) AS skew FROM responses;
-- refused: STRING_AGG() is not supported
SELECT region, STRING_AGG(q1, ', ') FROM responses GROUP BY region;
-- refused: RANDOM() is not supported
SELECT region, COUNT(*) FROM responses GROUP BY region ORDER BY RANDOM() LIMIT 2;
