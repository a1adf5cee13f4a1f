-- More statements over requests to a city: generated SQL, dbt models, BI tools.

SELECT "t0"."borough" AS "borough", COUNT(*) AS "count" FROM "requests" AS "t0" GROUP BY "t0"."borough" ORDER BY "count" DESC NULLS LAST LIMIT 1000;
SELECT DATE_TRUNC('month', CAST("requests"."opened" AS timestamp)) AS "opened", COUNT(*) AS "count" FROM "requests" GROUP BY DATE_TRUNC('month', CAST("requests"."opened" AS timestamp)) ORDER BY "opened" ASC;
SELECT (CAST(SUM(CASE WHEN ("status" = 'open') THEN 1 ELSE 0 END) AS DOUBLE) / NULLIF(COUNT(*), 0)) AS "open_rate", "borough" FROM "requests" WHERE (("opened" >= DATE '2024-01-01') AND ("opened" < DATE '2024-07-01')) GROUP BY "borough" HAVING (COUNT(*) > 100);
WITH source AS (SELECT * FROM requests), renamed AS (SELECT borough AS area, complaint AS kind, status, days AS open_days FROM source), final AS (SELECT area, kind, COUNT(*) AS n, AVG(open_days) AS mean_days FROM renamed WHERE status <> 'open' GROUP BY 1, 2) SELECT * FROM final ORDER BY n DESC;
SELECT SUM(1) AS "sum:records", borough AS "none:borough:nk" FROM requests GROUP BY 2;
SELECT borough, status, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY borough) AS total, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (PARTITION BY borough) AS pct FROM requests GROUP BY borough, status ORDER BY borough, n DESC;
WITH n AS (SELECT complaint, COUNT(*) AS n FROM requests GROUP BY complaint), r AS (SELECT complaint, n, SUM(n) OVER (ORDER BY n DESC) AS running, SUM(n) OVER () AS total FROM n) SELECT complaint, n, running * 1.0 / total AS cumulative FROM r ORDER BY n DESC;
WITH n AS (SELECT complaint, COUNT(*) AS n FROM requests GROUP BY complaint), r AS (SELECT complaint, n, SUM(n) OVER (ORDER BY n DESC) AS running, SUM(n) OVER () AS total FROM n) SELECT complaint, n FROM r WHERE running <= 0.8 * total;
WITH ranked AS (SELECT borough, complaint, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY borough ORDER BY COUNT(*) DESC) AS rn FROM requests GROUP BY borough, complaint) SELECT borough, complaint AS top_complaint, n FROM ranked WHERE rn = 1;
SELECT borough, complaint, COUNT(*) AS n FROM requests GROUP BY borough, complaint ORDER BY borough, RANK() OVER (PARTITION BY borough ORDER BY COUNT(*) DESC);
SELECT MONTH(opened) AS m, COUNT(*) AS n, AVG(COUNT(*)) OVER (ORDER BY MONTH(opened) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving FROM requests GROUP BY MONTH(opened) ORDER BY m;
WITH m AS (SELECT DATE_TRUNC('month', opened) AS month, complaint, COUNT(*) AS n FROM requests GROUP BY 1, 2) SELECT month, complaint, n, n - LAG(n, 1) OVER (PARTITION BY complaint ORDER BY month) AS diff FROM m WHERE complaint IN ('heat', 'water') ORDER BY complaint, month;
SELECT CASE WHEN COUNT(*) > 2000 THEN 'many' ELSE 'few' END AS volume, COUNT(*) AS n FROM requests;
SELECT borough, CASE WHEN AVG(days) > 8 THEN 'slow' WHEN AVG(days) > 7.9 THEN 'usual' ELSE 'fast' END AS pace, ROUND(AVG(days), 9) AS mean FROM requests GROUP BY borough ORDER BY mean;
SELECT borough, COUNT(*) AS n, COUNT(*) > 1000 AS is_large FROM requests GROUP BY borough;
SELECT borough, complaint FROM (SELECT borough, complaint, COUNT(*) AS n, MAX(COUNT(*)) OVER (PARTITION BY borough) AS most FROM requests GROUP BY 1, 2) t WHERE n = most;
SELECT b.name, COUNT(*) AS n FROM boroughs b LEFT JOIN requests r ON b.borough = r.borough GROUP BY b.name ORDER BY n DESC;
SELECT b.name, b.population, COUNT(r.status) AS n, 1000.0 * COUNT(r.status) / b.population AS per_1000 FROM boroughs AS b LEFT OUTER JOIN requests AS r ON r.borough = b.borough AND r.status = 'open' GROUP BY b.name, b.population ORDER BY per_1000 DESC;
SELECT b.region, SUM(b.population) AS people FROM requests r JOIN boroughs b ON r.borough = b.borough GROUP BY b.region;
SELECT region, COUNT(*) AS n FROM requests NATURAL JOIN boroughs GROUP BY region;
SELECT b.region, COUNT(*) AS n FROM requests r, boroughs b WHERE r.borough = b.borough AND b.population > 500 GROUP BY b.region;
SELECT borough, COUNT(*) AS n FROM requests WHERE borough = (SELECT borough FROM boroughs WHERE name = 'Queens') GROUP BY borough;
SELECT borough, COUNT(*) AS n FROM requests r WHERE EXISTS (SELECT 1 FROM boroughs b WHERE b.borough = r.borough AND b.region = 'city') GROUP BY borough;
SELECT COALESCE(borough, 'Total') AS borough, COUNT(*) FILTER (WHERE status = 'open') AS open_n, COUNT(*) AS n FROM requests GROUP BY ROLLUP (borough) ORDER BY n DESC;
SELECT borough, COUNT(*) AS n, 0 AS is_total FROM requests GROUP BY borough UNION ALL SELECT 'Total', COUNT(*), 1 FROM requests ORDER BY is_total, borough;
SELECT HOUR(received) AS h, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM requests GROUP BY 1 ORDER BY 2 DESC LIMIT 5;
-- dialect: duckdb
-- duckdb: SELECT strftime(received, '%a') AS d, COUNT(*) AS n FROM requests GROUP BY 1 ORDER BY MIN(ISODOW(received));
SELECT strftime(received, '%a') AS d, COUNT(*) AS n FROM requests GROUP BY d ORDER BY MIN(ISODOW(received));
-- dialect: postgres
-- duckdb: SELECT HOUR(received) AS hour, COUNT(*) AS n FROM requests WHERE ISODOW(received) < 6 GROUP BY 1 ORDER BY 1;
SELECT extract(hour from received)::int AS hour, count(*) AS n FROM requests WHERE extract(isodow from received) < 6 GROUP BY 1 ORDER BY 1;
-- dialect: postgres
-- duckdb: SELECT DATE_TRUNC('week', opened) AS week, COUNT(*) AS n FROM requests WHERE opened < DATE '2024-12-30' GROUP BY 1 ORDER BY 1;
SELECT date_trunc('week', opened) AS week, count(*) AS n FROM requests WHERE opened < '2024-12-30' GROUP BY 1 ORDER BY 1;
-- dialect: bigquery
-- duckdb: SELECT strftime(opened, '%Y-%m') AS month, COUNT(*) AS n FROM requests GROUP BY 1 ORDER BY month;
SELECT FORMAT_DATE('%Y-%m', opened) AS month, COUNT(*) AS n FROM `city.service.requests` GROUP BY month ORDER BY month;
-- dialect: tsql
-- duckdb: SELECT borough, COUNT(*) AS n, CAST(100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS DECIMAL(18, 9)) AS pct FROM requests GROUP BY borough;
SELECT [borough], COUNT(*) AS [n], CAST(100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS DECIMAL(18, 9)) AS [pct] FROM [dbo].[requests] GROUP BY [borough];
-- dialect: snowflake
-- duckdb: SELECT borough, COUNT(*) FILTER (WHERE complaint ILIKE '%noise%') AS noise FROM requests GROUP BY borough;
SELECT borough, SUM(IFF(complaint ILIKE '%noise%', 1, 0)) AS noise FROM requests GROUP BY borough;
-- dialect: snowflake
-- duckdb: SELECT split_part(complaint, ' - ', 1) AS kind, COUNT(*) AS n FROM requests GROUP BY kind ORDER BY n DESC;
SELECT SPLIT_PART(complaint, ' - ', 1) AS kind, COUNT(*) AS n FROM requests GROUP BY kind ORDER BY n DESC;
SELECT borough, COUNT(*) AS n, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM requests) AS share FROM requests GROUP BY borough;
SELECT b.name, ROUND(1000.0 * COUNT(*) / b.population, 2) AS per_1000 FROM requests r JOIN boroughs b ON b.borough = r.borough WHERE r.status <> 'closed' GROUP BY 1, b.population ORDER BY 2 DESC;
SELECT SPLIT_PART(complaint, ' - ', 1) AS kind, SPLIT_PART(complaint, ' - ', 2) AS detail, COUNT(*) AS n FROM requests GROUP BY 1, 2;
SELECT CAST(received AS DATE) AS day, HOUR(received) AS h, COUNT(*) AS n FROM requests WHERE received < '2024-01-08' GROUP BY 1, 2 ORDER BY 1, 2;
WITH daily AS (SELECT received::DATE AS d, COUNT(*) AS n FROM requests GROUP BY 1) SELECT d, n, AVG(n) OVER (ORDER BY d ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS smooth FROM daily ORDER BY d;
WITH daily AS (SELECT received::DATE AS d, COUNT(*) AS n FROM requests GROUP BY 1) SELECT DAYNAME(d) AS wd, AVG(n) AS usual FROM daily GROUP BY 1;
SELECT complaint, borough, n FROM (SELECT complaint, borough, COUNT(*) AS n, MAX(COUNT(*)) OVER (PARTITION BY complaint) AS m FROM requests GROUP BY complaint, borough) t WHERE n = m;
SELECT complaint, AVG(days) AS mean, QUANTILE_CONT(days, 0.9) AS p90 FROM requests WHERE status = 'closed' GROUP BY complaint ORDER BY p90 DESC;
SELECT LOWER(b.region) AS region, COUNT(*) AS n, SUM(days) AS days FROM requests r JOIN boroughs b USING (borough) GROUP BY LOWER(b.region) HAVING COUNT(*) > 1000;
SELECT borough, COUNT(*) AS n, COUNT(*) - AVG(COUNT(*)) OVER () AS above, RANK() OVER (ORDER BY COUNT(*) DESC) FROM requests GROUP BY borough;
SELECT "union", COUNT(*) AS n FROM requests GROUP BY "union" ORDER BY 1;
-- refused: a single row decides it, which noise must hide; write QUANTI
SELECT MAX(days) FROM requests;
-- refused: it is not a sum over rows; GROUP BY the column, and count th
SELECT borough, COUNT(DISTINCT complaint) FROM requests GROUP BY borough;
