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
-- refused: MAX() is not supported; a single row decides it, which noise must hide; ask for QUANTILE_DISC(x, 0.01) or 0.99
SELECT MAX(los) FROM stays;
-- refused: COUNT(DISTINCT …) is not supported; it is not a sum over rows; GROUP BY the column, and count the groups that are not near 0
SELECT ward, COUNT(DISTINCT diagnosis) FROM stays GROUP BY ward;
