-- Statements over employees, in the dialects and habits of several databases and tools.

-- dialect: tsql
SELECT TOP (10) department, COUNT(*) AS headcount FROM hr.employees GROUP BY department ORDER BY headcount DESC;
-- dialect: tsql
SELECT department, AVG(CAST(salary AS FLOAT)) AS mean_salary FROM [hr].[employees] WHERE active = 1 GROUP BY department;
-- dialect: tsql
SELECT department, SUM(salary * fte) AS payroll FROM hr.employees GROUP BY department;
-- dialect: tsql
SELECT DATENAME(month, hired) AS m, COUNT(*) AS n FROM hr.employees GROUP BY DATENAME(month, hired);
-- dialect: tsql
SELECT ISNULL(rating, 0) AS rating, COUNT(*) AS n FROM hr.employees GROUP BY ISNULL(rating, 0);
-- dialect: tsql
SELECT department, grade, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY department) AS total FROM hr.employees GROUP BY department, grade;
-- dialect: tsql
SELECT department, COUNT(*) AS n, CAST(COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS DECIMAL(5, 2)) AS pct FROM hr.employees GROUP BY department;
-- dialect: tsql
SELECT DATEDIFF(year, hired, '2024-12-31') AS tenure, COUNT(*) AS n FROM hr.employees GROUP BY DATEDIFF(year, hired, '2024-12-31');
-- dialect: tsql
SELECT FORMAT(hired, 'yyyy-MM') AS ym, COUNT(*) AS n FROM hr.employees GROUP BY FORMAT(hired, 'yyyy-MM');
-- dialect: tsql
SELECT EOMONTH(hired) AS m, COUNT(*) AS n FROM hr.employees GROUP BY EOMONTH(hired);
-- dialect: tsql
-- duckdb: SELECT department, STDDEV(age) AS sd, VARIANCE(age) AS v FROM employees GROUP BY department;
SELECT department, STDEV(age) AS sd, VAR(age) AS v FROM hr.employees GROUP BY department;
-- dialect: tsql
SELECT CONCAT(department, ' / ', grade) AS k, COUNT(*) AS n FROM hr.employees GROUP BY CONCAT(department, ' / ', grade);
-- dialect: tsql
SELECT COUNT(*) FROM hr.employees WHERE hired >= DATEADD(year, -2, '2024-12-31') AND LEN(department) > 2;
-- dialect: snowflake
SELECT department, AVG(salary) AS mean_salary, RANK() OVER (ORDER BY AVG(salary) DESC) AS r FROM hr.public.employees GROUP BY 1;
-- dialect: snowflake
SELECT department, grade, COUNT(*) AS n FROM employees GROUP BY 1, 2 QUALIFY RANK() OVER (PARTITION BY department ORDER BY COUNT(*) DESC) = 1;
-- dialect: snowflake
SELECT YEAR(hired) AS y, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY YEAR(hired)) AS growth FROM employees GROUP BY y;
-- dialect: snowflake
SELECT department, NTILE(2) OVER (ORDER BY COUNT(*)) AS half, COUNT(*) AS n FROM employees GROUP BY department;
-- dialect: snowflake
SELECT department, DIV0NULL(SUM(CASE WHEN remote THEN 1 END), COUNT(*)) AS remote_share FROM employees GROUP BY department;
-- dialect: snowflake
SELECT NVL2(rating, 'rated', 'not rated') AS r, COUNT(*) AS n FROM employees GROUP BY r;
-- dialect: snowflake
SELECT DAYNAME(hired) AS d, COUNT(*) AS n FROM employees GROUP BY d;
-- dialect: snowflake
-- duckdb: SELECT COUNT(*) / SUM(COUNT(*)) OVER () AS share, department FROM employees GROUP BY department;
SELECT RATIO_TO_REPORT(COUNT(*)) OVER () AS share, department FROM employees GROUP BY department;
-- dialect: postgres
SELECT department, AVG(age) FILTER (WHERE gender = 'F') - AVG(age) FILTER (WHERE gender = 'M') AS gap FROM hr.employees GROUP BY department;
-- dialect: postgres
SELECT date_part('year', hired)::int AS y, COUNT(*) AS n FROM hr.employees GROUP BY y ORDER BY y;
-- dialect: postgres
SELECT department, SUM(COUNT(*)) OVER (ORDER BY department) AS running FROM employees GROUP BY department;
-- dialect: postgres
-- duckdb: SELECT CASE WHEN age < 20 THEN 0 WHEN age >= 70 THEN 6 ELSE (age - 20) // 10 + 1 END AS b, COUNT(*) AS n FROM employees GROUP BY b;
SELECT width_bucket(age, 20, 70, 5) AS b, COUNT(*) AS n FROM employees GROUP BY b;
-- dialect: postgres
SELECT department, COUNT(*) AS n, PERCENT_RANK() OVER (ORDER BY COUNT(*)) AS pr, CUME_DIST() OVER (ORDER BY COUNT(*)) AS cd FROM employees GROUP BY department;
-- dialect: postgres
SELECT department, n, n - LEAD(n, 1, 0) OVER (ORDER BY department) AS d FROM (SELECT department, COUNT(*) AS n FROM employees GROUP BY department) s;
-- dialect: postgres
SELECT grade, AVG(n) AS mean_size FROM (SELECT grade, department, COUNT(*) AS n FROM employees GROUP BY grade, department) x GROUP BY grade;
-- dialect: postgres
SELECT CASE WHEN age < 30 THEN '<30' WHEN age < 50 THEN '30-49' ELSE '50+' END AS band, COUNT(*) AS n FROM employees GROUP BY 1 ORDER BY MIN(age);
-- dialect: mysql
SELECT department, SUM(gender = 'F') / COUNT(*) AS female_share FROM hr.employees GROUP BY department;
-- dialect: mysql
-- duckdb: SELECT YEAR(hired) AS y, QUARTER(hired) AS q, COUNT(*) AS n FROM employees GROUP BY ROLLUP (y, q);
SELECT YEAR(hired) AS y, QUARTER(hired) AS q, COUNT(*) AS n FROM employees GROUP BY y, q WITH ROLLUP;
-- dialect: mysql
SELECT DATE_FORMAT(hired, '%b') AS m, COUNT(*) AS n FROM employees WHERE active = TRUE GROUP BY m;
-- dialect: mysql
SELECT TIMESTAMPDIFF(MONTH, hired, '2024-12-31') > 24 AS senior, COUNT(*) AS n FROM employees GROUP BY senior;
-- dialect: bigquery
SELECT department, COUNTIF(remote) AS remote, COUNT(*) AS n, ROUND(100 * COUNTIF(remote) / COUNT(*), 1) AS pct FROM `hr.employees` GROUP BY department ORDER BY pct DESC LIMIT 3;
-- dialect: bigquery
-- duckdb: SELECT department, MEDIAN(age) AS median_age FROM employees GROUP BY department;
SELECT department, APPROX_QUANTILES(age, 100)[OFFSET(50)] AS median_age FROM employees GROUP BY department;
SELECT CORR(age, rating) FROM employees;
-- refused: COUNT(DISTINCT …) of persons is not supported; max_rows limits the rows of a person over all groups, so that a group would count only persons whose row in it was kept; COUNT(*) counts rows. Where the table has one row per person, COUNT(*) is the number of persons
SELECT department, COUNT(DISTINCT employee_id) AS people FROM employees GROUP BY department;
-- refused: COUNT(*) OVER (…) is not supported; SUM, AVG, MIN
SELECT DISTINCT department, COUNT(*) OVER (PARTITION BY department) AS n FROM employees;
-- duckdb: SELECT department, AVG(age) AS mean_age, STDDEV(age) AS sd FROM employees WHERE active GROUP BY department;
-- dialect: tsql
SELECT department, AVG(CAST(age AS FLOAT)) AS mean_age, STDEV(age) AS sd FROM hr.employees WHERE active = 1 GROUP BY department;
-- duckdb: SELECT DATE_DIFF('year', hired, DATE '2024-12-31') AS tenure, COUNT(*) AS n FROM employees GROUP BY 1 ORDER BY 1;
-- dialect: snowflake
SELECT DATEDIFF('year', hired, '2024-12-31') AS tenure, COUNT(*) AS n FROM employees GROUP BY 1 ORDER BY 1;
-- duckdb: SELECT grade, gender, COUNT(*) AS n FROM employees GROUP BY ROLLUP (grade, gender);
-- dialect: mysql
SELECT grade, gender, COUNT(*) AS n FROM employees GROUP BY grade, gender WITH ROLLUP;
SELECT department, gender, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY department) AS share FROM employees GROUP BY department, gender;
-- duckdb: SELECT department, count(*) FILTER (WHERE rating >= 4)::DOUBLE / nullif(count(rating), 0) AS good FROM employees GROUP BY department ORDER BY good DESC NULLS LAST;
-- dialect: postgres
SELECT department, count(*) FILTER (WHERE rating >= 4)::numeric / nullif(count(rating), 0) AS good FROM employees GROUP BY department ORDER BY good DESC NULLS LAST;
-- duckdb: SELECT EXTRACT(YEAR FROM hired) AS y, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY EXTRACT(YEAR FROM hired)) AS running FROM employees GROUP BY y ORDER BY y;
-- dialect: bigquery
SELECT EXTRACT(YEAR FROM hired) AS y, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY EXTRACT(YEAR FROM hired)) AS running FROM employees GROUP BY y ORDER BY y;
SELECT department, SUM(salary * fte) AS payroll FROM employees GROUP BY department;
SELECT gender, MODE(department) AS typical FROM employees WHERE remote GROUP BY gender;
-- duckdb: SELECT department, MEDIAN(age) AS med FROM employees GROUP BY department;
-- dialect: redshift
SELECT department, MEDIAN(age) AS med FROM employees GROUP BY department;
-- duckdb: SELECT IF(age < 30, 'young', 'other') AS grp, COUNT(*) AS n FROM employees GROUP BY 1;
-- dialect: tsql
SELECT IIF(age < 30, 'young', 'other') AS grp, COUNT_BIG(*) AS n FROM employees GROUP BY IIF(age < 30, 'young', 'other');
SELECT COALESCE(CAST(rating AS VARCHAR), 'none') AS rating_text, COUNT(*) AS n FROM employees GROUP BY 1 ORDER BY 1;
SELECT department, CORR(age, rating) AS r FROM employees GROUP BY department;
-- duckdb: SELECT date_part('year', hired)::int AS y, round(avg(age), 2) AS a FROM employees GROUP BY y;
-- dialect: postgres
SELECT date_part('year', hired)::int AS y, avg(age)::numeric(5,2) AS a FROM employees GROUP BY y;
-- refused: BOOL_AND() is not supported
-- dialect: postgres
SELECT grade, bool_and(active) FROM employees GROUP BY grade;
-- dialect: postgres
SELECT DISTINCT ON (department) department, grade, count(*) AS n FROM employees GROUP BY department, grade ORDER BY department, n DESC;
-- duckdb: SELECT department, quantile_cont(age, 0.5) AS med FROM employees GROUP BY department;
-- dialect: bigquery
SELECT department, APPROX_QUANTILES(age, 4)[OFFSET(2)] AS med FROM employees GROUP BY department;
-- duckdb: SELECT CAST(DATE_TRUNC('quarter', hired) AS DATE) AS q, COUNT(*) AS n FROM employees GROUP BY q;
-- dialect: bigquery
SELECT DATE_TRUNC(hired, QUARTER) AS q, COUNT(*) AS n FROM employees GROUP BY q;
-- dialect: bigquery
SELECT * FROM (SELECT department, gender FROM employees) PIVOT (COUNT(*) FOR gender IN ('F', 'M'));
-- duckdb: SELECT year(hired) AS y, quarter(hired) AS q, count(1) AS n FROM employees GROUP BY 1, 2;
-- dialect: spark
SELECT year(hired) AS y, quarter(hired) AS q, count(1) AS n FROM employees GROUP BY year(hired), quarter(hired);
-- duckdb: SELECT department, MEDIAN(age) AS m, quantile_cont(age, 0.9) AS p90 FROM employees GROUP BY department;
-- dialect: snowflake
SELECT department, MEDIAN(age) AS m, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) AS p90 FROM employees GROUP BY department;
-- duckdb: SELECT CASE WHEN grade IN ('A', 'B') THEN 'senior' ELSE 'junior' END AS lvl, COUNT(*) AS n FROM employees GROUP BY lvl;
-- dialect: snowflake
SELECT DECODE(grade, 'A', 'senior', 'B', 'senior', 'junior') AS lvl, COUNT(*) AS n FROM employees GROUP BY lvl;
SELECT department, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS rnk FROM employees GROUP BY department ORDER BY rnk;
SELECT floor(age / 10) * 10 AS decade, COUNT(*) AS n FROM employees GROUP BY decade ORDER BY decade;
SELECT department, SUM(salary) / SUM(fte) AS per_fte FROM employees GROUP BY department;
SELECT department FROM employees GROUP BY department HAVING AVG(rating) > 3;
SELECT gender, VAR_SAMP(age) AS v, STDDEV_POP(age) AS s FROM employees GROUP BY gender;
SELECT hired, COUNT(*) AS n FROM employees WHERE hired BETWEEN '2024-01-01' AND '2024-01-31' GROUP BY hired;
