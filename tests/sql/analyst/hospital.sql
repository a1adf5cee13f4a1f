-- Statements over stays in hospitals, in the dialects and habits of several databases and tools.

-- dialect: postgres
SELECT to_char(admitted, 'YYYY-MM') AS month, COUNT(*) AS n FROM public.stays GROUP BY 1 ORDER BY 1;
-- dialect: postgres
SELECT date_trunc('month', admitted)::date AS m, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY date_trunc('month', admitted)::date) AS change FROM stays GROUP BY 1 ORDER BY 1;
-- dialect: postgres
SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM clinic.stays GROUP BY ward;
-- dialect: postgres
SELECT EXTRACT(ISODOW FROM admitted) AS dow, COUNT(*) AS n FROM stays WHERE emergency GROUP BY 1;
-- dialect: postgres
SELECT ward, percentile_cont(0.5) WITHIN GROUP (ORDER BY los) AS med FROM stays GROUP BY ward;
-- dialect: postgres
SELECT COUNT(*) FROM stays WHERE admitted >= '2023-01-01'::timestamp AND admitted < '2023-02-01'::timestamp;
-- dialect: postgres
SELECT ward, ROUND(AVG(los)::numeric, 1) AS days FROM stays GROUP BY ward ORDER BY days DESC;
-- dialect: postgres
SELECT ward, (COUNT(*) FILTER (WHERE readmitted))::float / COUNT(*) AS rate FROM stays GROUP BY ward HAVING COUNT(*) > 100;
-- dialect: postgres
SELECT hospital, ward, n FROM (SELECT hospital, ward, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY hospital ORDER BY COUNT(*) DESC) AS rn FROM stays GROUP BY hospital, ward) t WHERE rn <= 2;
-- duckdb: SELECT STRFTIME(admitted, '%a') AS d, COUNT(*) AS n FROM stays GROUP BY 1;
-- dialect: postgres
SELECT to_char(admitted, 'Dy') AS d, COUNT(*) AS n FROM stays GROUP BY 1;
-- dialect: postgres
WITH daily AS (SELECT admitted, COUNT(*) AS n FROM stays GROUP BY admitted) SELECT AVG(n) AS per_day FROM daily;
-- dialect: snowflake
SELECT ward, IFF(age >= 65, 'senior', 'other') AS grp, COUNT(*) AS n FROM stays GROUP BY ward, grp;
-- dialect: snowflake
SELECT ward, DIV0(SUM(IFF(readmitted, 1, 0)), COUNT(*)) AS rate FROM stays GROUP BY ward;
-- dialect: snowflake
SELECT ward, COUNT_IF(emergency) AS e, COUNT(*) AS n FROM hospital_db.core.stays GROUP BY ward QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) <= 3;
-- dialect: snowflake
SELECT DATE_TRUNC('MONTH', admitted) AS m, COUNT(*) AS n FROM stays WHERE admitted >= DATEADD(month, -3, '2023-12-31'::DATE) GROUP BY m;
-- dialect: snowflake
-- refused: DATE_DIFF('day', admitted, discharged) has 577,430 combinations of declared values, and at most 131,072 are evaluated; compare each attribute with constants, or have the owner of the table add a column for it
SELECT DATEDIFF('day', admitted, discharged) AS d, COUNT(*) AS n FROM stays WHERE discharged IS NOT NULL AND admitted BETWEEN '2022-01-01' AND '2022-01-31' AND discharged <= '2022-03-31' GROUP BY d;
-- dialect: snowflake
SELECT DECODE(sex, 'F', 'female', 'M', 'male', 'other') AS gender, COUNT(*) AS n FROM stays GROUP BY gender;
-- dialect: snowflake
-- duckdb: SELECT STRFTIME(admitted, '%Y-%m') AS ym, AVG(los) AS days FROM stays GROUP BY ym ORDER BY ym;
SELECT TO_CHAR(admitted, 'YYYY-MM') AS ym, AVG(los) AS days FROM stays GROUP BY ym ORDER BY ym;
-- dialect: snowflake
SELECT ZEROIFNULL(SUM(los)) AS days, NVL(SUM(severity), 0) AS sev FROM stays WHERE ward = 'surgery';
-- dialect: tsql
SELECT TOP 5 diagnosis, COUNT(*) AS n FROM [dbo].[stays] GROUP BY diagnosis ORDER BY n DESC;
-- dialect: tsql
SELECT YEAR(admitted) AS y, MONTH(admitted) AS m, COUNT(*) AS n FROM dbo.stays GROUP BY YEAR(admitted), MONTH(admitted);
-- dialect: tsql
SELECT ward, SUM(CASE WHEN readmitted = 1 THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS pct FROM dbo.stays GROUP BY ward;
-- dialect: tsql
SELECT DATEPART(quarter, admitted) AS q, COUNT(*) AS n FROM stays WHERE admitted >= DATEFROMPARTS(2023, 1, 1) GROUP BY DATEPART(quarter, admitted);
-- dialect: tsql
SELECT AVG(DATEDIFF(day, admitted, discharged)) AS d FROM stays WHERE discharged IS NOT NULL;
-- dialect: tsql
SELECT ward, IIF(los > 7, 'long', 'short') AS kind, COUNT(*) AS n FROM stays GROUP BY ward, IIF(los > 7, 'long', 'short');
-- dialect: bigquery
SELECT ward, SAFE_DIVIDE(COUNTIF(readmitted), COUNT(*)) AS rate FROM `clinic-prod.core.stays` GROUP BY ward;
-- dialect: bigquery
SELECT FORMAT_DATE('%Y-%m', admitted) AS ym, COUNT(*) AS n FROM `stays` GROUP BY ym ORDER BY ym;
-- dialect: bigquery
SELECT DATE_TRUNC(admitted, MONTH) AS m, COUNT(*) AS n FROM stays WHERE ward IN ("surgery", "oncology") GROUP BY m;
-- dialect: bigquery
SELECT EXTRACT(YEAR FROM admitted) AS y, COUNT(*) AS n, AVG(los) AS days FROM stays GROUP BY y;
-- dialect: bigquery
SELECT COUNT(*) FROM stays WHERE admitted >= DATE_SUB(DATE '2023-12-31', INTERVAL 30 DAY);
-- dialect: mysql
SELECT DATE_FORMAT(admitted, '%Y-%m') AS ym, COUNT(*) AS n FROM stays GROUP BY ym;
-- dialect: mysql
SELECT IF(age < 18, 'child', 'adult') AS grp, COUNT(*) AS n, AVG(los) AS days FROM stays GROUP BY grp;
-- dialect: mysql
SELECT IFNULL(insurance, 'none') AS insurance, COUNT(*) AS n FROM stays GROUP BY IFNULL(insurance, 'none');
SELECT * FROM (SELECT ward, sex FROM stays) PIVOT (COUNT(*) FOR sex IN ('F', 'M'));
SELECT ward, MODE(diagnosis) AS most FROM stays GROUP BY ward;
SELECT admitted, AVG(COUNT(*)) OVER (ORDER BY admitted ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS ma7 FROM stays GROUP BY admitted;
-- refused: a single row decides it
SELECT MAX(los) FROM stays;
-- refused: is not supported; it is not a sum over rows
SELECT ward, COUNT(DISTINCT diagnosis) FROM stays GROUP BY ward;
-- duckdb: SELECT CAST(date_trunc('month', admitted) AS DATE) AS month, count(*) FILTER (WHERE emergency) AS urgent, count(*) AS n FROM stays GROUP BY 1 ORDER BY 1;
-- dialect: postgres
SELECT date_trunc('month', admitted)::date AS month, count(*) FILTER (WHERE emergency) AS urgent, count(*) AS n FROM public.stays GROUP BY 1 ORDER BY 1;
-- duckdb: SELECT diagnosis, COUNT(*) AS n FROM stays WHERE YEAR(admitted) = 2023 GROUP BY diagnosis ORDER BY n DESC LIMIT 5;
-- dialect: tsql
SELECT TOP 5 diagnosis, COUNT(*) AS n FROM dbo.stays WHERE YEAR(admitted) = 2023 GROUP BY diagnosis ORDER BY n DESC;
-- duckdb: SELECT ward, SUM(IF(age >= 65, 1, 0)) / COUNT(*) AS share_old FROM stays GROUP BY ward;
-- dialect: mysql
SELECT ward, SUM(IF(age >= 65, 1, 0)) / COUNT(*) AS share_old FROM stays GROUP BY ward;
-- duckdb: SELECT ward, COUNT_IF(los > 7) AS long_stays, COUNT_IF(los > 7) / COUNT(*) AS rate FROM stays GROUP BY ward ORDER BY rate DESC;
-- dialect: bigquery
SELECT ward, COUNTIF(los > 7) AS long_stays, SAFE_DIVIDE(COUNTIF(los > 7), COUNT(*)) AS rate FROM `clinic.stays` GROUP BY ward ORDER BY rate DESC;
-- duckdb: SELECT ward, IF(age < 18, 'child', 'adult') AS who, AVG(los) AS mean_los FROM stays GROUP BY ward, who QUALIFY RANK() OVER (PARTITION BY who ORDER BY AVG(los) DESC) <= 2;
-- dialect: snowflake
SELECT ward, IFF(age < 18, 'child', 'adult') AS who, AVG(los) AS mean_los FROM stays GROUP BY ward, who QUALIFY RANK() OVER (PARTITION BY who ORDER BY AVG(los) DESC) <= 2;
SELECT ward, COUNT(*) FILTER (los BETWEEN 0 AND 2) AS short, COUNT(*) FILTER (los BETWEEN 3 AND 7) AS medium, COUNT(*) FILTER (los > 7) AS long FROM stays GROUP BY ALL;
SELECT CASE WHEN age < 18 THEN '0-17' WHEN age < 40 THEN '18-39' WHEN age < 65 THEN '40-64' ELSE '65+' END AS band, sex, COUNT(*) AS n FROM stays GROUP BY CUBE (band, sex);
SELECT ward, ROUND(100.0 * SUM(CASE WHEN readmitted THEN 1 ELSE 0 END) / COUNT(*), 1) AS pct FROM stays GROUP BY ward HAVING COUNT(*) > 500;
-- duckdb: SELECT strftime(admitted, '%Y-%m') AS month, quantile_cont(los, 0.5) AS med FROM stays GROUP BY 1;
-- dialect: spark
SELECT date_format(admitted, 'yyyy-MM') AS month, percentile_approx(los, 0.5) AS med FROM stays GROUP BY 1;
WITH m AS (SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward), t AS (SELECT COUNT(*) AS total FROM stays) SELECT m.ward, 100.0 * m.n / t.total AS share FROM m CROSS JOIN t ORDER BY share DESC;
-- duckdb: SELECT extract(isodow from admitted) AS dow, count(*) AS n FROM stays GROUP BY 1 ORDER BY 1;
-- dialect: postgres
SELECT extract(isodow from admitted) AS dow, count(*) AS n FROM stays GROUP BY 1 ORDER BY 1;
-- duckdb: SELECT ward, count(*) AS n FROM stays WHERE regexp_matches(diagnosis, '^J') GROUP BY ward ORDER BY n DESC LIMIT 3;
-- dialect: postgres
SELECT ward, count(*) AS n FROM stays WHERE diagnosis ~ '^J' GROUP BY ward ORDER BY n DESC FETCH FIRST 3 ROWS ONLY;
-- duckdb: SELECT ward, count(*) AS n FROM stays WHERE diagnosis ILIKE 'i%' OR diagnosis ILIKE 'j%' GROUP BY ward;
-- dialect: postgres
SELECT ward, count(*) AS n FROM stays WHERE diagnosis ILIKE ANY (ARRAY['i%', 'j%']) GROUP BY ward;
-- duckdb: SELECT LEFT(diagnosis, 1) AS chapter, COUNT(*) AS n FROM stays WHERE diagnosis NOT LIKE 'Z%' GROUP BY chapter ORDER BY n DESC;
-- dialect: mysql
SELECT LEFT(diagnosis, 1) AS chapter, COUNT(*) AS n FROM stays WHERE diagnosis NOT LIKE 'Z%' GROUP BY chapter ORDER BY n DESC;
-- duckdb: SELECT COUNT(*) AS n FROM stays WHERE admitted >= DATE '2023-05-31';
-- dialect: mysql
SELECT COUNT(*) AS n FROM stays WHERE admitted >= DATE_SUB('2023-06-30', INTERVAL 30 DAY);
-- duckdb: SELECT last_day(admitted) AS month_end, COUNT(*) AS n FROM stays GROUP BY 1;
-- dialect: tsql
SELECT EOMONTH(admitted) AS month_end, COUNT(*) AS n FROM stays GROUP BY EOMONTH(admitted);
-- duckdb: SELECT ward, SUM(CASE WHEN emergency THEN 1 ELSE 0 END) AS urgent FROM stays GROUP BY ward;
-- dialect: tsql
SELECT ward, SUM(CASE emergency WHEN 1 THEN 1 ELSE 0 END) AS urgent FROM stays GROUP BY ward;
-- duckdb: SELECT COUNT(*) AS n FROM stays WHERE strpos(diagnosis, '1') > 0 AND length(diagnosis) = 3;
-- dialect: tsql
SELECT COUNT(*) AS n FROM stays WHERE CHARINDEX('1', diagnosis) > 0 AND LEN(diagnosis) = 3;
-- duckdb: SELECT strftime(admitted, '%b') AS m, COUNT(*) AS n FROM stays GROUP BY m;
-- dialect: snowflake
SELECT MONTHNAME(admitted) AS m, COUNT(*) AS n FROM stays GROUP BY m;
-- duckdb: SELECT ward, COALESCE(SUM(severity), 0) AS points, COALESCE(severity, 0) AS s FROM stays GROUP BY ward, s;
-- dialect: snowflake
SELECT ward, ZEROIFNULL(SUM(severity)) AS points, NVL(severity, 0) AS s FROM stays GROUP BY ward, s;
SELECT date_diff('month', DATE '2022-01-01', admitted) AS m, COUNT(*) AS n FROM stays GROUP BY m ORDER BY m;
SELECT ward, AVG(los) - (SELECT AVG(los) FROM stays) AS gap FROM stays GROUP BY ward;
SELECT ward, hospital, COUNT(*) AS n FROM stays GROUP BY ward, hospital HAVING COUNT(*) >= 100 ORDER BY ward, n DESC;
SELECT severity, COUNT(*) AS n, ROUND(COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (), 2) AS pct FROM stays GROUP BY severity;
SELECT COUNT(*) AS n FROM stays WHERE (ward, sex) IN (('surgery', 'F'), ('oncology', 'M'));
SELECT count(*) FROM stays WHERE age > 64 AND NOT (ward = 'maternity' OR emergency IS TRUE);
