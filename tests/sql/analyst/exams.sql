-- Statements over results of exams, in the habits of several databases and tools.

WITH y AS (SELECT year, COUNT(*) AS n FROM exams GROUP BY year) SELECT year, n, LAG(n) OVER (ORDER BY year) AS before, n * 1.0 / LAG(n) OVER (ORDER BY year) - 1 AS growth FROM y ORDER BY year;
WITH y AS (SELECT year, AVG(points) AS mean FROM exams GROUP BY year), z AS (SELECT year, mean, LAG(mean) OVER (ORDER BY year) AS before FROM y) SELECT year, mean, mean - before AS change FROM z WHERE year >= 2022 ORDER BY year;
WITH y AS (SELECT school, year, COUNT(*) AS n FROM exams GROUP BY school, year), z AS (SELECT *, LAG(n) OVER (PARTITION BY school ORDER BY year) AS before FROM y) SELECT school, year, n, n - before AS change FROM z WHERE before IS NOT NULL;
WITH y AS (SELECT school, year, COUNT(*) AS n FROM exams GROUP BY school, year), z AS (SELECT school, year, n, LAG(n) OVER (PARTITION BY school ORDER BY year) AS before FROM y) SELECT school, n, before FROM z WHERE year = 2024 ORDER BY n - before DESC;
SELECT a.school, a.n AS n_2023, b.n AS n_2024, b.n - a.n AS change FROM (SELECT school, COUNT(*) AS n FROM exams WHERE year = 2023 GROUP BY school) a JOIN (SELECT school, COUNT(*) AS n FROM exams WHERE year = 2024 GROUP BY school) b ON a.school = b.school;
SELECT school, SUM(CASE WHEN year = 2023 THEN 1 ELSE 0 END) AS n_2023, SUM(CASE WHEN year = 2024 THEN 1 ELSE 0 END) AS n_2024, SUM(CASE WHEN year = 2024 THEN 1 WHEN year = 2023 THEN -1 ELSE 0 END) AS change FROM exams GROUP BY school;
SELECT grade, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY grade) AS up_to, 100.0 * SUM(COUNT(*)) OVER (ORDER BY grade) / SUM(COUNT(*)) OVER () AS pct FROM exams GROUP BY grade ORDER BY grade;
SELECT school, n, SUM(n) OVER (ORDER BY n DESC, school) AS running FROM (SELECT school, COUNT(*) AS n FROM exams GROUP BY school) t ORDER BY n DESC;
-- duckdb: SELECT school, COUNT(*) AS n FROM exams WHERE school IN (SELECT school FROM exams GROUP BY school ORDER BY COUNT(*) DESC LIMIT 2) GROUP BY school;
WITH s AS (SELECT school, COUNT(*) AS n FROM exams GROUP BY school), top AS (SELECT school FROM s ORDER BY n DESC LIMIT 2) SELECT s.school, s.n FROM s JOIN top ON top.school = s.school;
-- refused: answer 'r' next to sums of answers is not supported; which groups are kept depends on noise
SELECT CASE WHEN r <= 2 THEN school ELSE 'other' END AS school, SUM(n) AS n FROM (SELECT school, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS r FROM exams GROUP BY school) t GROUP BY 1;
SELECT subject, AVG(points) AS mean, CASE WHEN AVG(points) >= 61 THEN 'good' WHEN AVG(points) >= 55 THEN 'fair' ELSE 'poor' END AS level FROM exams GROUP BY subject;
SELECT school, CASE WHEN COUNT(*) FILTER (WHERE passed) > COUNT(*) FILTER (WHERE NOT passed) THEN 'mostly passed' ELSE 'mostly failed' END AS verdict, COUNT(*) AS n FROM exams GROUP BY school;
SELECT school, CASE WHEN COUNT(*) < 1000 THEN NULL ELSE AVG(points) END AS mean FROM exams GROUP BY school;
SELECT school, CASE WHEN COUNT(*) >= 1000 THEN COUNT(*) END AS n FROM exams GROUP BY school;
SELECT subject, grade, COUNT(*) AS n, RANK() OVER (PARTITION BY subject ORDER BY COUNT(*) DESC) AS place FROM exams GROUP BY subject, grade ORDER BY subject, place;
SELECT subject, grade, n FROM (SELECT subject, grade, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY subject ORDER BY COUNT(*) DESC) AS place FROM exams GROUP BY subject, grade) t WHERE place = 1 ORDER BY subject;
-- refused: DISTINCT is not supported; select COUNT(*) and GROUP BY
SELECT DISTINCT subject, FIRST_VALUE(grade) OVER (PARTITION BY subject ORDER BY COUNT(*) DESC) AS most FROM exams GROUP BY subject, grade;
SELECT subject, grade, COUNT(*) AS n, FIRST_VALUE(grade) OVER (PARTITION BY subject ORDER BY COUNT(*) DESC) AS most FROM exams GROUP BY subject, grade;
SELECT school, COUNT(*) AS n, COUNT(*) - MIN(COUNT(*)) OVER () AS above_least FROM exams GROUP BY school;
SELECT MAX(n) AS most, MIN(n) AS least FROM (SELECT school, COUNT(*) AS n FROM exams GROUP BY school) t;
SELECT MAX(n) - MIN(n) AS span FROM (SELECT school, COUNT(*) AS n FROM exams GROUP BY school) t;
SELECT subject, MAX(n) AS most, MIN(n) AS least FROM (SELECT subject, school, COUNT(*) AS n FROM exams GROUP BY subject, school) t GROUP BY subject;
SELECT MAX(mean) AS best FROM (SELECT school, AVG(points) AS mean FROM exams GROUP BY school) t;
WITH s AS (SELECT school, AVG(points) AS mean FROM exams GROUP BY school), a AS (SELECT AVG(points) AS mean FROM exams) SELECT s.school, s.mean, s.mean - a.mean AS diff FROM s, a ORDER BY diff;
WITH a AS (SELECT subject, AVG(points) AS mean FROM exams GROUP BY subject) SELECT e.school, e.subject, AVG(e.points) - a.mean AS diff FROM exams e JOIN a ON a.subject = e.subject GROUP BY e.school, e.subject, a.mean;
SELECT school, AVG(points) AS mean, AVG(points) - (SELECT AVG(points) FROM exams) AS diff FROM exams GROUP BY school HAVING AVG(points) > (SELECT AVG(points) FROM exams);
WITH s AS (SELECT school, subject, COUNT(*) AS n FROM exams GROUP BY 1, 2), t AS (SELECT school, SUM(n) AS total FROM s GROUP BY 1) SELECT s.school, s.subject, 100.0 * s.n / t.total AS pct FROM s JOIN t ON s.school = t.school;
SELECT school, COUNT(*) AS n, ROUND(100.0 * AVG(CASE WHEN passed THEN 1 ELSE 0 END), 9) AS pass_rate FROM exams GROUP BY school ORDER BY pass_rate DESC;
SELECT school, GREATEST(COUNT(*) - 1000, 0) AS over, LEAST(COUNT(*), 1000) AS capped FROM exams GROUP BY school;
SELECT subject, COUNT(*) AS n FROM exams GROUP BY subject ORDER BY array_position(['maths', 'english', 'history', 'biology'], subject);
SELECT grade, COUNT(*) AS n FROM exams GROUP BY grade ORDER BY CASE WHEN grade = 'F' THEN 0 ELSE 1 END, grade DESC;
-- duckdb: SELECT * FROM (PIVOT exams ON grade USING COUNT(*) GROUP BY subject) ORDER BY subject LIMIT 3;
PIVOT exams ON grade USING COUNT(*) GROUP BY subject ORDER BY subject LIMIT 3;
SELECT s.title, COUNT(*) AS n, 100.0 * COUNT(*) / s.pupils AS per_100 FROM exams e JOIN schools s ON s.school = e.school GROUP BY s.title, s.pupils;
SELECT s.title, ROUND(1000.0 * COUNT(*) FILTER (WHERE NOT passed) / MAX(s.pupils), 9) AS failed_per_1000 FROM exams e JOIN schools s ON s.school = e.school GROUP BY s.title ORDER BY 2 DESC;
SELECT s.title, COUNT(e.school) AS n FROM schools s LEFT JOIN exams e ON e.school = s.school AND e.year = 2024 GROUP BY s.title ORDER BY s.title;
SELECT s.district, COUNT(*) AS n, AVG(e.points) AS mean FROM schools s INNER JOIN exams e ON e.school = s.school WHERE s.pupils > 500 GROUP BY s.district;
SELECT s.district, COUNT(*) AS n FROM exams e JOIN (SELECT school, district FROM schools WHERE pupils > 500) s ON e.school = s.school GROUP BY s.district;
SELECT s.district, COUNT(*) AS n FROM exams e LEFT JOIN schools s ON e.school = s.school AND s.pupils > 500 GROUP BY s.district;
WITH n AS (SELECT school, COUNT(*) AS n FROM exams GROUP BY school) SELECT s.title, n.n, n.n * 100.0 / s.pupils AS rate FROM schools s JOIN n ON n.school = s.school ORDER BY rate;
WITH n AS (SELECT school, COUNT(*) AS n FROM exams GROUP BY school) SELECT s.title, COALESCE(n.n, 0) AS n FROM schools s LEFT JOIN n ON n.school = s.school;
SELECT SUM(su.credits) AS credits, e.school FROM exams e JOIN subjects su ON su.subject = e.subject WHERE e.passed GROUP BY e.school;
SELECT e.school, SUM(e.points * su.credits) / SUM(su.credits) AS weighted_mean FROM exams e JOIN subjects su ON su.subject = e.subject GROUP BY e.school;
SELECT COALESCE(school, 'All') AS school, COALESCE(CAST(year AS VARCHAR), 'All') AS year, COUNT(*) AS n FROM exams GROUP BY ROLLUP (school, year);
SELECT COALESCE(school, 'All') AS school, COUNT(*) AS n, AVG(points) AS mean FROM exams GROUP BY GROUPING SETS ((school), ()) ORDER BY school;
SELECT school, year, COUNT(*) AS n FROM exams GROUP BY GROUPING SETS ((school), (year));
SELECT subject, COUNT(*) AS n, AVG(points) AS mean FROM exams GROUP BY subject UNION ALL SELECT 'All subjects', COUNT(*), AVG(points) FROM exams;
SELECT 'all' AS who, COUNT(*) AS n, AVG(points) AS mean FROM exams UNION ALL SELECT 'support', COUNT(*), AVG(points) FROM exams WHERE support UNION ALL SELECT 'no support', COUNT(*), AVG(points) FROM exams WHERE NOT support;
SELECT who, n FROM (SELECT 'f' AS who, COUNT(*) AS n FROM exams WHERE sex = 'f' UNION ALL SELECT 'm', COUNT(*) FROM exams WHERE sex = 'm') t ORDER BY n DESC;
SELECT SUM(n) AS n FROM (SELECT COUNT(*) AS n FROM exams WHERE sex = 'f' UNION ALL SELECT COUNT(*) FROM exams WHERE sex = 'm') t;
SELECT year, term, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY year ORDER BY term) AS so_far FROM exams GROUP BY year, term ORDER BY year, term;
SELECT EXTRACT(YEAR FROM taken) AS y, EXTRACT(QUARTER FROM taken) AS q, COUNT(*) AS n FROM exams GROUP BY 1, 2 ORDER BY 1, 2;
-- dialect: duckdb
-- duckdb: SELECT dayname(taken) AS day, COUNT(*) AS n FROM exams GROUP BY dayname(taken) ORDER BY MIN(ISODOW(taken));
SELECT dayname(taken) AS day, COUNT(*) AS n FROM exams GROUP BY dayname(taken) ORDER BY ISODOW(taken);
-- dialect: duckdb
-- duckdb: SELECT monthname(taken) AS month, COUNT(*) AS n FROM exams GROUP BY 1 ORDER BY MIN(MONTH(taken));
SELECT monthname(taken) AS month, COUNT(*) AS n FROM exams GROUP BY monthname(taken) ORDER BY MONTH(taken);
-- dialect: duckdb
SELECT monthname(taken) AS month, COUNT(*) AS n FROM exams GROUP BY monthname(taken) ORDER BY MIN(MONTH(taken));
SELECT CASE WHEN hours < 5 THEN '0-5' WHEN hours < 20 THEN '5-20' ELSE '20+' END AS band, COUNT(*) AS n, AVG(points) AS mean, AVG(hours) AS h FROM exams GROUP BY 1;
-- dialect: postgres
-- duckdb: SELECT points // 10 + 1 AS b, COUNT(*) AS n FROM exams GROUP BY 1 ORDER BY 1;
SELECT WIDTH_BUCKET(points, 0, 100, 10) AS b, COUNT(*) AS n FROM exams GROUP BY 1 ORDER BY 1;
SELECT FLOOR(points / 10) * 10 AS band, COUNT(*) AS n FROM exams GROUP BY band ORDER BY band;
SELECT subject, SUM(points * attempt) AS s, SUM(hours * attempt) AS h, SUM(hours * points) / SUM(hours) AS m FROM exams GROUP BY subject;
SELECT subject, CORR(points, attempt) AS r, STDDEV(points) AS sd FROM exams GROUP BY subject;
SELECT school, AVG(points + COALESCE(bonus, 0)) AS mean FROM exams GROUP BY school;
SELECT school, AVG(points) FILTER (WHERE support IS NOT TRUE) AS mean, COUNT(*) FILTER (WHERE support IS NULL) AS unknown FROM exams GROUP BY school;
-- dialect: postgres
-- duckdb: SELECT school, COUNT(*) FILTER (WHERE passed) / COUNT(*) AS rate FROM exams GROUP BY school;
SELECT school, COUNT(*) FILTER (WHERE passed)::float / NULLIF(COUNT(*), 0) AS rate FROM public.exams GROUP BY school;
-- dialect: postgres
-- duckdb: SELECT school, COUNT(*) FILTER (WHERE passed) / COUNT(*) AS rate FROM exams GROUP BY school;
SELECT school, AVG(passed::int) AS rate FROM exams GROUP BY school;
-- dialect: postgres
-- duckdb: SELECT strftime(taken, '%Y-%m') AS month, COUNT(*) AS n FROM exams GROUP BY 1 ORDER BY 1;
SELECT to_char(taken, 'YYYY-MM') AS month, COUNT(*) AS n FROM exams GROUP BY 1 ORDER BY 1;
-- dialect: postgres
-- duckdb: SELECT COUNT(*) FROM exams WHERE taken >= DATE '2024-06-01' AND taken < DATE '2024-07-01';
SELECT COUNT(*) FROM exams WHERE taken >= '2024-06-01'::date AND taken < '2024-06-01'::date + INTERVAL '1 month';
-- dialect: bigquery
-- duckdb: SELECT school, AVG(points) AS mean, QUANTILE_CONT(points, 0.5) AS middle FROM exams GROUP BY school;
SELECT school, AVG(points) AS mean, APPROX_QUANTILES(points, 2)[OFFSET(1)] AS middle FROM exams GROUP BY school;
-- dialect: bigquery
-- duckdb: SELECT school, COUNT(*) FILTER (WHERE passed) AS n FROM exams GROUP BY school;
SELECT school, COUNT(IF(passed, 1, NULL)) AS n FROM exams GROUP BY school;
-- dialect: snowflake
-- duckdb: SELECT school, CASE WHEN COUNT(*) > 1000 THEN 'large' ELSE 'small' END AS size, COUNT(*) AS n FROM exams GROUP BY school;
SELECT school, IFF(COUNT(*) > 1000, 'large', 'small') AS size, COUNT(*) AS n FROM exams GROUP BY school;
-- dialect: snowflake
-- duckdb: SELECT CAST(DATE_TRUNC('month', taken) AS DATE) AS m, COUNT(*) AS n FROM exams GROUP BY 1 ORDER BY 1;
SELECT DATE_TRUNC('MONTH', taken)::DATE AS m, COUNT(*) AS n FROM exams GROUP BY 1 ORDER BY 1;
-- dialect: snowflake
-- duckdb: SELECT school, AVG(points) AS mean FROM exams GROUP BY school;
SELECT school, AVG(points)::NUMBER(18, 12) AS mean FROM analytics.exams GROUP BY ALL;
-- dialect: tsql
-- duckdb: SELECT school, COUNT(*) AS n FROM exams GROUP BY school ORDER BY n DESC LIMIT 2;
SELECT TOP (2) school, COUNT(*) AS n FROM exams GROUP BY school ORDER BY n DESC;
-- dialect: tsql
-- duckdb: SELECT school, COUNT(*) FILTER (WHERE year = 2023) AS "2023", COUNT(*) FILTER (WHERE year = 2024) AS "2024" FROM exams GROUP BY school;
SELECT school, [2023], [2024] FROM (SELECT school, year FROM exams) s PIVOT (COUNT(year) FOR year IN ([2023], [2024])) p;
-- dialect: mysql
-- duckdb: SELECT school, SUM(CASE WHEN passed THEN 1 ELSE 0 END) AS n FROM exams GROUP BY school;
SELECT school, SUM(passed) AS n FROM exams GROUP BY school;
-- dialect: mysql
-- duckdb: SELECT IF(GROUPING(school) = 1, 'All', school) AS school, COUNT(*) AS n FROM exams GROUP BY ROLLUP (school);
SELECT IF(GROUPING(school), 'All', school) AS school, COUNT(*) AS n FROM exams GROUP BY school WITH ROLLUP;
-- dialect: spark
-- duckdb: SELECT school, COUNT(*) FILTER (WHERE passed) AS n FROM exams GROUP BY school;
SELECT school, count_if(passed) AS n FROM exams GROUP BY school;
SELECT subject, grade, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY subject ORDER BY grade) AS at_least FROM exams GROUP BY subject, grade ORDER BY subject, grade;
SELECT school, AVG(points) AS mean, STDDEV(points) AS sd, COUNT(*) AS n, AVG(points) - 1.96 * STDDEV(points) / SQRT(COUNT(*)) AS low FROM exams GROUP BY school;
SELECT s.title, COUNT(*) AS n, COUNT(*) * 100.0 / s.pupils AS per_100 FROM exams e JOIN schools s ON e.school = s.school GROUP BY s.title, s.pupils ORDER BY per_100 DESC;
SELECT s.district, AVG(e.points) AS mean, SUM(e.points * su.credits) / SUM(su.credits) AS weighted FROM exams e JOIN schools s USING (school) JOIN subjects su USING (subject) GROUP BY s.district;
SELECT year, AVG(points) AS mean, AVG(points) - LAG(AVG(points)) OVER (ORDER BY year) AS change FROM exams GROUP BY year ORDER BY year;
SELECT subject, CASE WHEN AVG(passed::INT) >= 0.7 THEN 'good' ELSE 'poor' END AS verdict, AVG(passed::INT) AS rate FROM exams GROUP BY subject;
WITH pass AS (SELECT school, year, AVG(CASE WHEN passed THEN 1.0 ELSE 0.0 END) AS rate FROM exams GROUP BY school, year) SELECT school, year, rate, rate - LAG(rate) OVER (PARTITION BY school ORDER BY year) AS delta FROM pass ORDER BY school, year;
WITH t AS (SELECT school, COUNT(*) AS n FROM exams GROUP BY school), m AS (SELECT MAX(n) AS top FROM t) SELECT t.school, t.n, 1.0 * t.n / m.top AS relative FROM t, m;
SELECT school, subject, n, n * 1.0 / total AS share FROM (SELECT school, subject, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY school) AS total FROM exams GROUP BY school, subject) t ORDER BY share DESC LIMIT 5;
SELECT sex, COUNT(*) FILTER (passed) AS passed, COUNT(*) AS n FROM exams GROUP BY sex;
SELECT points // 10 * 10 AS decile, COUNT(*) AS n FROM exams GROUP BY decile ORDER BY decile;
SELECT FLOOR(points / 10) * 10 AS bucket, COUNT(*) FROM exams WHERE subject = 'maths' GROUP BY bucket ORDER BY bucket;
SELECT CORR(points, attempt) AS r, REGR_SLOPE(points, bonus) AS slope FROM exams;
SELECT AVG(hours) AS mean_hours, SUM(hours) AS total, COUNT(*) FILTER (WHERE hours >= 20) AS heavy FROM exams WHERE support;
SELECT subject, MODE(grade) AS usual FROM exams GROUP BY subject;
SELECT subject, NTILE(2) OVER (ORDER BY AVG(points) DESC) AS half, AVG(points) AS mean FROM exams GROUP BY subject;
SELECT year, term, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY year, term) AS running FROM exams GROUP BY year, term ORDER BY year, term;
SELECT school FROM exams GROUP BY school HAVING AVG(points) > 61;
SELECT school, COUNT(*) AS n FROM exams WHERE school IN (SELECT school FROM schools WHERE district = 'north') AND NOT subject IN ('maths') GROUP BY school;
SELECT COUNT(*) FROM exams e WHERE EXISTS (SELECT 1 FROM subjects s WHERE s.subject = e.subject AND s.field = 'science');
SELECT DAYNAME(taken) AS day, COUNT(*) AS n FROM exams GROUP BY DAYNAME(taken), ISODOW(taken) ORDER BY ISODOW(taken);
SELECT MONTHNAME(taken) AS month, COUNT(*) AS n FROM exams WHERE year = 2024 GROUP BY 1 ORDER BY MIN(MONTH(taken));
SELECT subject, AVG(points) FILTER (WHERE sex = 'f') - AVG(points) FILTER (WHERE sex = 'm') AS gap FROM exams GROUP BY subject ORDER BY gap DESC;
SELECT grade, COUNT(*) AS n, CASE grade WHEN 'A' THEN 'top' WHEN 'F' THEN 'fail' ELSE 'middle' END AS tier FROM exams GROUP BY grade ORDER BY grade;
SELECT COALESCE(bonus, 0) AS bonus, COUNT(*) AS n, AVG(points + COALESCE(bonus, 0)) AS total FROM exams GROUP BY 1 ORDER BY 1;
SELECT SUM(points * bonus) AS s, AVG(points * 1.0 / 100) AS a FROM exams;
