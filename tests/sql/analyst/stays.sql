-- Statements over stays in hospitals, written before it was tried which of them are compiled:
-- by an engineer, by a tool for reports, by a statistician. DuckDB is asked what "duckdb:" says.

-- data engineer
SELECT hospital, DATE_TRUNC('month', admitted) AS month, COUNT(*) AS admissions FROM stays GROUP BY hospital, month ORDER BY hospital, month;
-- duckdb: SELECT s.ward, COUNT(*) AS n, AVG(s.los) AS avg_los FROM stays s WHERE s.admitted >= DATE '2023-01-01' GROUP BY s.ward ORDER BY avg_los DESC;
SELECT s.ward, COUNT(*) AS n, AVG(s.los) AS avg_los FROM public.stays s WHERE s.admitted >= DATE '2023-01-01' GROUP BY s.ward ORDER BY avg_los DESC;
SELECT ward, COUNT(*) FILTER (WHERE readmitted) AS readmissions, ROUND(100.0 * COUNT(*) FILTER (WHERE readmitted) / NULLIF(COUNT(*), 0), 2) AS readmission_pct FROM stays GROUP BY ward;
SELECT ward, ROUND(COUNT(*) FILTER (WHERE readmitted)::numeric / COUNT(*), 3) AS rate FROM stays GROUP BY ward;
WITH adults AS (SELECT * FROM stays WHERE age >= 18), em AS (SELECT * FROM adults WHERE emergency IS TRUE) SELECT sex, COUNT(*) AS n FROM em GROUP BY sex;
WITH x AS (SELECT ward, los, CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS age_group FROM stays) SELECT ward, age_group, AVG(los) AS mean_los, COUNT(*) AS n FROM x GROUP BY ward, age_group;
SELECT COUNT(*) FROM stays WHERE diagnosis LIKE 'I%' AND age > 50;
SELECT LEFT(diagnosis, 1) AS chapter, COUNT(*) AS n, SUM(los) AS bed_days FROM stays GROUP BY 1 ORDER BY bed_days DESC;
SELECT hospital, ward, SUM(los) AS bed_days, SUM(SUM(los)) OVER (PARTITION BY hospital) AS hospital_days FROM stays GROUP BY hospital, ward;
SELECT hospital, ward, 1.0 * SUM(los) / SUM(SUM(los)) OVER (PARTITION BY hospital) AS share FROM stays GROUP BY hospital, ward;
SELECT EXTRACT(YEAR FROM admitted) AS yr, EXTRACT(QUARTER FROM admitted) AS qtr, COUNT(*) FROM stays GROUP BY yr, qtr ORDER BY yr, qtr;
SELECT COUNT(*) FROM stays WHERE admitted >= DATE '2023-06-30' - INTERVAL '90 days' AND admitted <= DATE '2023-06-30';
-- refused: (discharged - admitted) > 7 has 577,430 combinations of declared values, and at most 131,072 are evaluated
SELECT COUNT(*) FROM stays WHERE discharged - admitted > 7;
SELECT AVG(DATE_DIFF('day', admitted, discharged)) FROM stays;
SELECT COUNT(*) FROM stays WHERE discharged IS NULL;
SELECT ward, severity, COUNT(*) FROM stays WHERE severity IS NOT NULL GROUP BY ward, severity HAVING COUNT(*) >= 20;
SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward HAVING NOT (COUNT(*) < 100) OR AVG(los) > 5;
SELECT ward, COUNT(*) AS n, DENSE_RANK() OVER (ORDER BY AVG(los) DESC) AS r FROM stays GROUP BY ward;
SELECT COUNT(*) AS n, COUNT(severity) AS with_severity, COUNT(*) - COUNT(severity) AS missing FROM stays;
SELECT hospital, COUNT(*) FROM stays WHERE ward NOT IN ('maternity', 'emergency') GROUP BY hospital;
SELECT CASE WHEN grouping(ward) = 1 THEN 'ALL' ELSE ward END AS w, COUNT(*) FROM stays GROUP BY ROLLUP (ward);
-- duckdb: SELECT sex, CASE WHEN GROUPING(emergency) = 0 THEN COALESCE(CAST(emergency AS VARCHAR), '(null)') END AS emergency, COUNT(*) AS n FROM stays GROUP BY GROUPING SETS ((sex), (stays.emergency), ());
SELECT sex, emergency, COUNT(*) AS n FROM stays GROUP BY GROUPING SETS ((sex), (emergency), ());
(SELECT ward, COUNT(*) AS n FROM stays WHERE sex = 'F' GROUP BY ward) UNION ALL (SELECT ward, COUNT(*) AS n FROM stays WHERE sex = 'M' GROUP BY ward);
SELECT 'female' AS g, AVG(los) AS m FROM stays WHERE sex = 'F' UNION ALL SELECT 'male' AS g, AVG(los) AS m FROM stays WHERE sex = 'M';
SELECT ward, SUM(los) FILTER (WHERE insurance = 'public') AS public_days, SUM(los) FILTER (WHERE insurance = 'private') AS private_days FROM stays GROUP BY ward;
SELECT hospital, COUNT(*) FROM stays WHERE extract(year from admitted) = 2023 AND lower(ward) = 'surgery' GROUP BY hospital;
-- refused: UNION is not supported
SELECT ward, COUNT(*) FROM stays WHERE emergency GROUP BY ward UNION SELECT ward, COUNT(*) FROM stays GROUP BY ward;
SELECT COUNT(*) FROM stays WHERE age BETWEEN SYMMETRIC 40 AND 20;
SELECT make_date(EXTRACT(year FROM admitted)::INT, EXTRACT(month FROM admitted)::INT, 1) AS m, COUNT(*) FROM stays GROUP BY 1 ORDER BY 1;
SELECT date_trunc('quarter', admitted)::date AS q, sum(case when readmitted then 1 else 0 end) AS r FROM stays GROUP BY 1;
-- BI
SELECT "Custom SQL Query"."ward" AS "ward", SUM(1) AS "cnt:ward:ok" FROM (SELECT * FROM stays) "Custom SQL Query" GROUP BY 1;
-- duckdb: SELECT "stays"."hospital" AS "Hospital", AVG(CAST("stays"."los" AS DOUBLE PRECISION)) AS "avg:los:ok", SUM("stays"."los") AS "sum:los:ok" FROM stays "stays" GROUP BY 1;
SELECT "stays"."hospital" AS "Hospital", AVG(CAST("stays"."los" AS DOUBLE PRECISION)) AS "avg:los:ok", SUM("stays"."los") AS "sum:los:ok" FROM "public"."stays" "stays" GROUP BY 1;
SELECT COALESCE("insurance", '(blank)') AS "Insurance", COUNT(*) AS "Stays" FROM "stays" GROUP BY COALESCE("insurance", '(blank)') ORDER BY "Stays" DESC;
SELECT CASE WHEN "los" = 0 THEN 'same day' WHEN "los" <= 3 THEN '1-3' WHEN "los" <= 7 THEN '4-7' WHEN "los" <= 14 THEN '8-14' ELSE '15+' END AS "Length of stay", COUNT(*) AS "Stays" FROM "stays" GROUP BY 1 ORDER BY 1;
SELECT "ward", SUM("n") AS "n" FROM (SELECT "ward", "hospital", COUNT(*) AS "n" FROM "stays" GROUP BY "ward", "hospital") AS "sub" GROUP BY "ward";
SELECT SUM(CASE WHEN "sex" = 'F' THEN 1 ELSE 0 END) AS "Women", SUM(CASE WHEN "sex" = 'M' THEN 1 ELSE 0 END) AS "Men", SUM(CASE WHEN "sex" NOT IN ('F', 'M') THEN 1 ELSE 0 END) AS "Other" FROM "stays";
SELECT "ward", AVG("cost") AS "Average cost", SUM("cost") AS "Total cost" FROM "stays" WHERE "cost" < 100000 GROUP BY "ward" ORDER BY "Total cost" DESC;
SELECT CASE WHEN cost < 1000 THEN 'low' WHEN cost < 10000 THEN 'mid' WHEN cost >= 10000 THEN 'high' ELSE 'unknown' END AS band, COUNT(*) FROM stays GROUP BY band;
SELECT CAST(SUM(CASE WHEN emergency = TRUE THEN 1 ELSE 0 END) AS FLOAT) / CAST(COUNT(*) AS FLOAT) AS "Emergency rate" FROM stays;
-- refused: FORMAT() is not supported
SELECT ward AS "Ward", FORMAT('{:.1f}', AVG(los)) AS "LOS" FROM stays GROUP BY ward;
SELECT COUNT(*) AS "Rows" FROM stays WHERE 0 = 0 AND ((ward = 'surgery') OR (ward = 'oncology')) AND NOT (sex IS NULL);
SELECT t.ward AS ward, t.n AS n, t.days AS days, t.days / t.n AS days_per_stay FROM (SELECT ward, COUNT(*) AS n, SUM(los) AS days FROM stays GROUP BY ward) AS t ORDER BY days_per_stay DESC LIMIT 3;
SELECT ward, SUM(CASE WHEN EXTRACT(YEAR FROM admitted) = 2022 THEN 1 ELSE 0 END) AS "2022", SUM(CASE WHEN EXTRACT(YEAR FROM admitted) = 2023 THEN 1 ELSE 0 END) AS "2023", SUM(CASE WHEN EXTRACT(YEAR FROM admitted) = 2023 THEN 1 ELSE 0 END) - SUM(CASE WHEN EXTRACT(YEAR FROM admitted) = 2022 THEN 1 ELSE 0 END) AS "Change" FROM stays GROUP BY ward;
SELECT (SELECT COUNT(*) FROM stays WHERE readmitted) AS readm, (SELECT COUNT(*) FROM stays) AS total;
SELECT (SELECT COUNT(*) FROM stays WHERE readmitted) * 1.0 / (SELECT COUNT(*) FROM stays) AS rate;
SELECT COUNT(*) FILTER (WHERE readmitted) / COUNT(*)::float AS rate FROM stays GROUP BY ();
SELECT month(admitted) AS "Month", count(*) AS "Stays" FROM stays WHERE year(admitted) = 2023 GROUP BY month(admitted) ORDER BY month(admitted);
-- duckdb: SELECT IFNULL(insurance, 'none') AS i, COUNT(*) FROM stays GROUP BY IFNULL(insurance, 'none');
SELECT ISNULL(insurance, 'none') AS i, COUNT(*) FROM stays GROUP BY ISNULL(insurance, 'none');
-- statistician
SELECT ward, COUNT(los) AS n, AVG(los) AS mean, STDDEV_SAMP(los) AS sd, MEDIAN(los) AS med FROM stays GROUP BY ward;
SELECT QUANTILE_DISC(los, 0.9) FROM stays WHERE ward = 'surgery';
SELECT sex, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age) AS median_age FROM stays GROUP BY sex;
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost) FROM stays WHERE ward = 'oncology';
SELECT MEDIAN(bmi) FROM stays WHERE sex = 'F';
SELECT AVG(bmi) FROM stays WHERE bmi >= 15 AND bmi < 50;
SELECT CORR(age, los) FROM stays;
SELECT ward, CORR(age, severity) FROM stays GROUP BY ward;
SELECT COVAR_POP(age, los) / VAR_POP(age) AS slope FROM stays;
SELECT AVG(age * los) - AVG(age) * AVG(los) AS cov FROM stays;
SELECT (AVG(los) FILTER (WHERE sex = 'F') - AVG(los) FILTER (WHERE sex = 'M')) / STDDEV(los) AS cohens_d FROM stays;
SELECT AVG(readmitted::int) AS p, AVG(readmitted::int) * (1 - AVG(readmitted::int)) AS var FROM stays;
SELECT emergency, AVG(CAST(readmitted AS INTEGER)) AS risk FROM stays WHERE emergency IS NOT NULL GROUP BY emergency;
SELECT AVG(CAST(readmitted AS INT)) FILTER (WHERE emergency) / AVG(CAST(readmitted AS INT)) FILTER (WHERE NOT emergency) AS relative_risk FROM stays;
-- duckdb: SELECT least(age, 100) // 10 + 1 AS bucket, COUNT(*) FROM stays GROUP BY bucket ORDER BY bucket;
SELECT width_bucket(age, 0, 100, 10) AS bucket, COUNT(*) FROM stays GROUP BY bucket ORDER BY bucket;
SELECT age // 10 AS decade, AVG(los) AS mean_los, STDDEV(los) AS sd_los FROM stays GROUP BY decade ORDER BY decade;
SELECT TRUNC(age / 10) * 10 AS lo, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS density FROM stays GROUP BY lo ORDER BY lo;
SELECT los, COUNT(*) AS f, SUM(COUNT(*)) OVER (ORDER BY los) * 1.0 / SUM(COUNT(*)) OVER () AS ecdf FROM stays GROUP BY los ORDER BY los;
-- refused: GROUP BY ROUND(bmi) is not supported
SELECT ROUND(bmi) AS b, COUNT(*) FROM stays GROUP BY b;
-- refused: bmi BETWEEN 15 AND 50 cuts through the cell [50, 70) of 'bmi', which is counted as one
SELECT FLOOR(bmi / 5) * 5 AS b, COUNT(*) FROM stays WHERE bmi BETWEEN 15 AND 50 GROUP BY b ORDER BY b;
SELECT AVG(los) + 1.96 * STDDEV(los) / SQRT(COUNT(*)) AS upper FROM stays;
SELECT SUM(los * severity) / SUM(severity) AS weighted FROM stays;
SELECT VARIANCE(los) / AVG(los) AS dispersion FROM stays;
SELECT GEOMEAN(los) FROM stays WHERE los > 0;
SELECT EXP(AVG(LN(los))) AS gm FROM stays WHERE los > 0;
-- refused: MAD() is not supported
SELECT MAD(los) FROM stays;
SELECT ward, AVG(los) AS m FROM stays GROUP BY ward HAVING STDDEV(los) > 2;
SELECT SUM(CASE WHEN los > 14 THEN 1.0 ELSE 0.0 END) / COUNT(*) AS tail FROM stays;
SELECT COUNT(*) FILTER (WHERE severity >= 3)::DOUBLE / COUNT(severity) FROM stays WHERE ward = 'cardiology' AND sex = 'F';
SELECT severity, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct, SUM(100.0 * COUNT(*)) OVER (ORDER BY severity) / SUM(COUNT(*)) OVER () AS cum_pct FROM stays WHERE severity IS NOT NULL GROUP BY severity ORDER BY severity;
