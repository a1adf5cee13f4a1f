-- Statements over results of exams, as BI tools, dbt and analysts of several databases write them.

-- dialect: postgres
SELECT school, subject, avg(points)::numeric(6, 2) AS mean, count(*) AS n FROM exams GROUP BY school, subject ORDER BY school, mean DESC;
-- dialect: postgres
SELECT year, count(*) FILTER (WHERE grade IN ('A', 'B')) AS good, (count(*) FILTER (WHERE grade IN ('A', 'B')))::float / count(*) AS share FROM exams GROUP BY year ORDER BY year;
-- dialect: postgres
-- duckdb: SELECT points // 10 + 1 AS bucket, COUNT(*) AS n FROM exams GROUP BY 1 ORDER BY 1;
SELECT width_bucket(points, 0, 100, 10) AS bucket, count(*) AS n FROM exams GROUP BY bucket ORDER BY bucket;
-- dialect: postgres
SELECT mode() WITHIN GROUP (ORDER BY grade) AS usual FROM exams;
-- dialect: bigquery
-- duckdb: SELECT school, COUNT_IF(passed) / COUNT(*) AS rate, STDDEV_SAMP(points) AS sd FROM exams GROUP BY school;
SELECT school, COUNTIF(passed) / COUNT(*) AS rate, STDDEV_SAMP(points) AS sd FROM exams GROUP BY school;
-- dialect: bigquery
-- duckdb: SELECT subject, COUNT(*) FILTER (WHERE grade = 'A') AS A, COUNT(*) FILTER (WHERE grade = 'F') AS F FROM exams GROUP BY subject;
SELECT * FROM (SELECT subject, grade FROM exams) PIVOT (COUNT(*) FOR grade IN ('A', 'F'));
-- dialect: bigquery
-- duckdb: SELECT subject, year, AVG(points) AS mean FROM exams GROUP BY 1, 2 ORDER BY 1, 2;
WITH base AS (SELECT subject, year, points FROM exams WHERE points IS NOT NULL) SELECT subject, year, AVG(points) AS mean FROM base GROUP BY 1, 2 ORDER BY 1, 2;
-- dialect: snowflake
-- duckdb: SELECT subject, MEDIAN(points) AS median, QUANTILE_CONT(points, 0.25) AS q1, QUANTILE_CONT(points, 0.75) AS q3 FROM exams GROUP BY subject;
SELECT subject, MEDIAN(points) AS median, APPROX_PERCENTILE(points, 0.25) AS q1, APPROX_PERCENTILE(points, 0.75) AS q3 FROM exams GROUP BY subject;
-- dialect: snowflake
-- duckdb: SELECT school, year, COUNT(*) AS n, GROUPING(school) AS gs, GROUPING(year) AS gy FROM exams GROUP BY CUBE (school, year);
SELECT school, year, COUNT(*) AS n, GROUPING(school) AS gs, GROUPING(year) AS gy FROM exams GROUP BY CUBE (school, year);
-- dialect: snowflake
-- duckdb: SELECT school, AVG(points) AS mean, AVG(points) - LAG(AVG(points)) OVER (ORDER BY school) AS change FROM exams GROUP BY school;
SELECT school, AVG(points) AS mean, AVG(points) - LAG(AVG(points)) OVER (ORDER BY school) AS change FROM exams GROUP BY school;
-- dialect: mysql
-- duckdb: SELECT grade, COUNT(*) AS n FROM exams GROUP BY grade ORDER BY grade DESC;
SELECT `grade`, COUNT(*) AS `n` FROM `exams` GROUP BY `grade` ORDER BY FIELD(`grade`, 'F', 'E', 'D', 'C', 'B', 'A');
-- dialect: mysql
-- duckdb: SELECT school, SUM(CASE WHEN passed THEN 1 ELSE 0 END) AS ok, ROUND(100 * AVG(CASE WHEN passed THEN 1 ELSE 0 END), 9) AS pct FROM exams GROUP BY school;
SELECT school, SUM(IF(passed, 1, 0)) AS ok, ROUND(100 * AVG(passed), 9) AS pct FROM exams GROUP BY school;
-- dialect: tsql
-- duckdb: SELECT school, AVG(1.0 * points) AS mean, STDDEV(points) AS sd FROM exams WHERE year = 2024 GROUP BY school;
SELECT school, AVG(1.0 * points) AS mean, STDEV(points) AS sd FROM exams WHERE year = 2024 GROUP BY school;
-- dialect: tsql
-- duckdb: SELECT subject, COUNT(*) FILTER (WHERE grade = 'A') AS A, COUNT(*) FILTER (WHERE grade = 'B') AS B FROM exams GROUP BY subject;
SELECT subject, [A], [B] FROM (SELECT subject, grade FROM exams) AS s PIVOT (COUNT(grade) FOR grade IN ([A], [B])) AS p;
-- dialect: tsql
-- duckdb: SELECT CASE GROUPING(school) WHEN 1 THEN 'All' ELSE school END AS school, COUNT(*) AS n FROM exams GROUP BY ROLLUP (school);
SELECT CASE GROUPING(school) WHEN 1 THEN 'All' ELSE school END AS school, COUNT(*) AS n FROM exams GROUP BY school WITH ROLLUP;
SELECT school, COUNT(*) AS n, SUM(CASE WHEN bonus IS NULL THEN 1 ELSE 0 END) AS no_bonus, 100.0 * SUM(CASE WHEN bonus IS NULL THEN 1 ELSE 0 END) / COUNT(*) AS pct FROM exams GROUP BY school;
SELECT school, SUM(points + COALESCE(bonus, 0)) AS total, AVG(points + COALESCE(bonus, 0)) AS mean FROM exams GROUP BY school;
SELECT CASE WHEN points >= 90 THEN '90-100' WHEN points >= 75 THEN '75-89' WHEN points >= 50 THEN '50-74' ELSE '0-49' END AS band, COUNT(*) AS n FROM exams GROUP BY band ORDER BY MIN(points) DESC;
SELECT points - points % 10 AS tens, sex, COUNT(*) AS n FROM exams GROUP BY tens, sex ORDER BY tens, sex;
SELECT year, AVG(points) AS mean, AVG(AVG(points)) OVER (ORDER BY year ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS smooth FROM exams GROUP BY year;
WITH s AS (SELECT school, AVG(points) AS mean FROM exams GROUP BY school) SELECT school, mean, RANK() OVER (ORDER BY mean DESC) AS place, mean - MAX(mean) OVER () AS behind FROM s ORDER BY place;
WITH s AS (SELECT school, AVG(points) AS mean FROM exams GROUP BY school) SELECT school, mean, mean - (SELECT AVG(mean) FROM s) AS diff FROM s;
WITH f AS (SELECT subject, AVG(points) AS mean FROM exams WHERE sex = 'f' GROUP BY subject), m AS (SELECT subject, AVG(points) AS mean FROM exams WHERE sex = 'm' GROUP BY subject) SELECT f.subject, f.mean AS girls, m.mean AS boys, f.mean - m.mean AS gap FROM f INNER JOIN m ON m.subject = f.subject ORDER BY gap DESC;
SELECT s.district, SUM(s.pupils) AS weight, COUNT(*) AS n FROM exams e JOIN schools s USING (school) GROUP BY s.district;
SELECT d.district, COUNT(*) AS n, COUNT(*) * 1.0 / p.pupils AS per_pupil FROM exams e JOIN schools d ON d.school = e.school JOIN (SELECT district, SUM(pupils) AS pupils FROM schools GROUP BY district) p ON p.district = d.district GROUP BY d.district, p.pupils;
SELECT school, COUNT(*) AS n FROM exams WHERE school IN (SELECT school FROM schools WHERE district = 'north' ORDER BY pupils DESC LIMIT 1) GROUP BY school;
-- refused: NTH_VALUE(COUNT(*), 2) OVER (…) is not supported
SELECT school, year, COUNT(*) AS n, COUNT(*) - FIRST_VALUE(COUNT(*)) OVER (PARTITION BY school ORDER BY year) AS since_first, NTH_VALUE(COUNT(*), 2) OVER (PARTITION BY school ORDER BY year ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS second FROM exams GROUP BY school, year;
SELECT year, term, COUNT(*) AS n, LAG(COUNT(*), 1, 0) OVER (ORDER BY year, term) AS before FROM exams GROUP BY year, term ORDER BY year, term;
SELECT school, COUNT(*) FILTER (WHERE passed IS TRUE) AS passed, COUNT(*) FILTER (WHERE passed IS NOT TRUE) AS failed, COUNT(support) AS known FROM exams GROUP BY school;
SELECT attempt = 1 AS first_time, AVG(points) AS mean, COUNT(*) AS n FROM exams GROUP BY 1;
SELECT SUM(points * 1.0) / COUNT(points) AS mean, SQRT(VAR_POP(points)) AS sd FROM exams;
SELECT YEAR(taken) AS y, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY YEAR(taken)) AS running, COUNT(*) / LAG(COUNT(*)) OVER (ORDER BY YEAR(taken)) - 1 AS growth FROM exams GROUP BY y ORDER BY y;
SELECT AVG(n) AS mean, MIN(n) AS least, MAX(n) AS most, SUM(n) AS total FROM (SELECT school, year, COUNT(*) AS n FROM exams GROUP BY school, year) AS t;
