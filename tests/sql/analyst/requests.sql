-- Statements over requests to a city (311), in the habits of BI tools, dbt and several databases.

SELECT MAX(n) AS most FROM (SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough);
SELECT MIN(n) AS least, MAX(n) AS most FROM (SELECT complaint, COUNT(*) AS n FROM requests GROUP BY complaint);
SELECT borough, MAX(n) AS most FROM (SELECT borough, complaint, COUNT(*) AS n FROM requests GROUP BY 1, 2) GROUP BY borough;
WITH m AS (SELECT MONTH(opened) AS m, COUNT(*) AS n FROM requests GROUP BY 1), p AS (SELECT m, n, LAG(n) OVER (ORDER BY m) AS before FROM m) SELECT m, n, before, n - before AS more FROM p WHERE before IS NOT NULL;
WITH m AS (SELECT MONTH(opened) AS m, COUNT(*) AS n FROM requests GROUP BY 1), p AS (SELECT m, n, LAG(n) OVER (ORDER BY m) AS before FROM m) SELECT m, n, before FROM p WHERE m >= 6;
WITH m AS (SELECT MONTH(opened) AS m, COUNT(*) AS n FROM requests GROUP BY 1) SELECT m, 100.0 * (n - LAG(n) OVER (ORDER BY m)) / LAG(n) OVER (ORDER BY m) AS pct FROM m ORDER BY m;
SELECT m, n, n - LAG(n) OVER (ORDER BY m) AS more FROM (SELECT MONTH(opened) AS m, COUNT(*) AS n FROM requests GROUP BY m) ORDER BY more DESC LIMIT 3;
SELECT complaint, n, SUM(n) OVER (ORDER BY n DESC) AS running FROM (SELECT complaint, COUNT(*) AS n FROM requests GROUP BY complaint);
SELECT complaint, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY COUNT(*) DESC) / SUM(COUNT(*)) OVER () AS share FROM requests GROUP BY complaint;
SELECT borough, CASE WHEN COUNT(*) > 1000 THEN 'many' ELSE 'few' END AS size, COUNT(*) AS n FROM requests GROUP BY borough;
SELECT borough, CASE WHEN AVG(days) > 10 THEN 'slow' ELSE 'fast' END AS pace FROM requests GROUP BY borough;
SELECT status, COUNT(*) AS n FROM requests GROUP BY status ORDER BY CASE status WHEN 'open' THEN 1 WHEN 'assigned' THEN 2 ELSE 3 END;
-- dialect: mysql
-- duckdb: SELECT status, COUNT(*) AS n FROM requests GROUP BY status ORDER BY CASE status WHEN 'open' THEN 1 WHEN 'assigned' THEN 2 WHEN 'closed' THEN 3 ELSE 0 END;
SELECT status, COUNT(*) AS n FROM requests GROUP BY status ORDER BY FIELD(status, 'open', 'assigned', 'closed');
-- dialect: postgres
-- duckdb: SELECT status, COUNT(*) AS n FROM requests GROUP BY status ORDER BY list_position(['open', 'assigned', 'closed'], status);
SELECT status, COUNT(*) AS n FROM requests GROUP BY status ORDER BY array_position(ARRAY['open', 'assigned', 'closed'], status);
SELECT DAYNAME(opened) AS day, COUNT(*) AS n FROM requests GROUP BY day ORDER BY MIN(ISODOW(opened));
-- dialect: duckdb
SELECT DAYNAME(opened) AS day, COUNT(*) AS n FROM requests GROUP BY DAYNAME(opened), ISODOW(opened) ORDER BY ISODOW(opened);
-- dialect: duckdb
SELECT DAYNAME(opened) AS day, ISODOW(opened) AS d, COUNT(*) AS n FROM requests GROUP BY 1, 2 ORDER BY 2;
SELECT borough, complaint, COUNT(*) AS n, FIRST_VALUE(complaint) OVER (PARTITION BY borough ORDER BY COUNT(*) DESC) AS top FROM requests GROUP BY borough, complaint;
WITH b AS (SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough), a AS (SELECT AVG(n) AS mean FROM b) SELECT b.borough, b.n - a.mean AS above FROM b, a;
WITH b AS (SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough), a AS (SELECT SUM(n) AS total FROM b) SELECT b.borough, 100.0 * b.n / a.total AS pct FROM b CROSS JOIN a;
WITH b AS (SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough) SELECT borough, n, n / (SELECT SUM(n) FROM b) AS share FROM b;
WITH b AS (SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough) SELECT borough, n - (SELECT AVG(n) FROM b) AS above FROM b;
WITH top AS (SELECT complaint, COUNT(*) AS n FROM requests GROUP BY complaint ORDER BY n DESC LIMIT 3), m AS (SELECT complaint, status, COUNT(*) AS n FROM requests GROUP BY 1, 2) SELECT m.complaint, m.status, m.n FROM m JOIN top ON m.complaint = top.complaint;
SELECT complaint, COUNT(*) AS n FROM requests GROUP BY complaint HAVING COUNT(*) > (SELECT COUNT(*) / 8 FROM requests);
SELECT complaint, n FROM (SELECT complaint, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM requests GROUP BY complaint) WHERE r <= 3;
SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough ORDER BY n / 2 DESC;
SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough ORDER BY LENGTH(borough), borough;
SELECT borough, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM requests GROUP BY borough;
SELECT borough, COUNT(*) AS n, ROUND(AVG(days), 1) AS mean FROM requests GROUP BY borough;
SELECT borough, GREATEST(COUNT(*), 0) AS n FROM requests GROUP BY borough;
SELECT borough, COALESCE(SUM(days), 0) AS days FROM requests GROUP BY borough;
-- duckdb: SELECT * FROM (PIVOT requests ON status USING COUNT(*) GROUP BY borough) ORDER BY borough;
PIVOT requests ON status USING COUNT(*) GROUP BY borough ORDER BY borough;
-- duckdb: SELECT borough, COUNT(*) FILTER (WHERE status = 'open') AS open_n, COUNT(*) FILTER (WHERE status = 'closed') AS closed_n FROM requests GROUP BY borough ORDER BY open_n DESC;
SELECT * FROM (SELECT borough, status FROM requests) PIVOT (COUNT(*) AS n FOR status IN ('open', 'closed')) ORDER BY open_n DESC;
SELECT b.name, 1000.0 * COUNT(*) / b.population AS per_1000 FROM requests r JOIN boroughs b ON r.borough = b.borough GROUP BY b.name, b.population;
SELECT r.borough, COUNT(*) * 1000.0 / MAX(b.population) AS per_1000 FROM requests r JOIN boroughs b ON r.borough = b.borough GROUP BY r.borough;
SELECT b.name, MAX(b.population) AS population, COUNT(*) AS n FROM requests r JOIN boroughs b USING (borough) GROUP BY b.name;
SELECT b.name, MIN(b.region) AS region, COUNT(*) AS n FROM requests r JOIN boroughs b USING (borough) GROUP BY b.name;
SELECT b.name, ANY_VALUE(b.region) AS region, COUNT(*) AS n FROM requests r JOIN boroughs b USING (borough) GROUP BY b.name;
SELECT b.name, b.population, COUNT(*) AS n FROM requests r JOIN boroughs b USING (borough) GROUP BY 1, 2;
SELECT b.name, COUNT(*) AS n FROM requests r JOIN boroughs b ON r.borough = b.borough AND b.population > 1500 GROUP BY b.name;
SELECT b.name, COUNT(*) AS n FROM requests r JOIN boroughs b ON b.borough = r.borough AND b.region = 'city' AND r.status = 'open' GROUP BY 1;
SELECT b.name, COUNT(*) AS n FROM requests r JOIN (SELECT borough, name FROM boroughs WHERE population > 1500) b ON r.borough = b.borough GROUP BY b.name;
SELECT b.name, COUNT(*) AS n FROM requests r JOIN (SELECT * FROM boroughs) b ON r.borough = b.borough GROUP BY b.name;
WITH big AS (SELECT borough, name FROM boroughs WHERE region = 'city') SELECT big.name, COUNT(*) AS n FROM requests r JOIN big ON big.borough = r.borough GROUP BY 1;
SELECT b.name, COUNT(r.borough) AS n FROM boroughs b LEFT JOIN requests r ON r.borough = b.borough GROUP BY b.name;
SELECT b.region, COUNT(*) AS n FROM boroughs b JOIN requests r ON r.borough = b.borough GROUP BY b.region;
-- refused: MAX(boroughs.area), which has several values in a group, is not supported; GROUP BY the column
SELECT b.region, SUM(days) / MAX(b.area) AS density FROM requests r JOIN boroughs b USING (borough) WHERE b.name = 'Kings' GROUP BY b.region;
WITH n AS (SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough) SELECT b.name, n.n FROM n JOIN boroughs b ON n.borough = b.borough;
WITH n AS (SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough) SELECT b.name, 1000.0 * n.n / b.population AS per_1000 FROM n JOIN boroughs b ON n.borough = b.borough ORDER BY per_1000 DESC;
SELECT COALESCE(borough, 'Total') AS borough, COUNT(*) AS n FROM requests GROUP BY ROLLUP (borough);
SELECT COALESCE(borough, 'All') AS b, COALESCE(status, 'All') AS s, COUNT(*) AS n FROM requests GROUP BY CUBE (borough, status);
-- dialect: mysql
-- duckdb: SELECT COALESCE(borough, 'Total') AS borough, COUNT(*) AS n FROM requests GROUP BY ROLLUP (borough);
SELECT IFNULL(borough, 'Total') AS borough, COUNT(*) AS n FROM requests GROUP BY borough WITH ROLLUP;
SELECT borough, GROUPING(borough) AS total, COUNT(*) AS n FROM requests GROUP BY ROLLUP (borough);
SELECT borough, status, GROUPING(borough) AS gb, GROUPING(status) AS gs, COUNT(*) AS n FROM requests GROUP BY GROUPING SETS ((borough, status), (borough), ());
SELECT CASE GROUPING(borough) WHEN 1 THEN 'Total' ELSE borough END AS borough, COUNT(*) AS n FROM requests GROUP BY ROLLUP (borough);
SELECT IF(GROUPING(borough) = 1, 'Total', borough) AS borough, COUNT(*) AS n FROM requests GROUP BY ROLLUP (borough) ORDER BY GROUPING(borough), borough;
SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough UNION ALL SELECT 'Total', COUNT(*) FROM requests;
SELECT borough, COUNT(*) AS n, AVG(days) AS mean FROM requests GROUP BY borough UNION ALL SELECT 'Total' AS borough, COUNT(*), AVG(days) FROM requests;
SELECT * FROM (SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough UNION ALL SELECT 'Total', COUNT(*) FROM requests) ORDER BY n DESC;
SELECT part, n FROM (SELECT 'open' AS part, COUNT(*) AS n FROM requests WHERE status = 'open' UNION ALL SELECT 'rest' AS part, COUNT(*) AS n FROM requests WHERE status <> 'open') AS u;
SELECT HOUR(received) AS h, COUNT(*) AS n FROM requests GROUP BY h ORDER BY h;
SELECT DATE_TRUNC('hour', received) AS h, COUNT(*) AS n FROM requests WHERE received >= '2024-01-10' AND received < '2024-01-12' GROUP BY h;
SELECT CAST(received AS DATE) AS d, COUNT(*) AS n FROM requests GROUP BY d ORDER BY d;
-- dialect: duckdb
SELECT EXTRACT(DOW FROM received) AS dow, EXTRACT(HOUR FROM received) AS h, COUNT(*) AS n FROM requests GROUP BY 1, 2;
SELECT CASE WHEN EXTRACT(HOUR FROM received) BETWEEN 8 AND 17 THEN 'office' ELSE 'other' END AS shift, COUNT(*) AS n FROM requests GROUP BY 1;
SELECT COUNT(*) FROM requests WHERE received >= TIMESTAMP '2024-01-05 08:00:00' AND received < TIMESTAMP '2024-01-05 17:00:00';
-- dialect: bigquery
-- duckdb: SELECT DATE_TRUNC('HOUR', received) AS h, COUNT(*) AS n FROM requests GROUP BY h;
SELECT TIMESTAMP_TRUNC(received, HOUR) AS h, COUNT(*) AS n FROM city.requests GROUP BY h;
-- dialect: bigquery
SELECT EXTRACT(HOUR FROM received) AS h, COUNT(*) AS n FROM city.requests GROUP BY h;
-- dialect: bigquery
-- duckdb: SELECT strftime(received, '%H') AS h, COUNT(*) AS n FROM requests GROUP BY h;
SELECT FORMAT_TIMESTAMP('%H', received) AS h, COUNT(*) AS n FROM city.requests GROUP BY h;
-- dialect: postgres
-- duckdb: SELECT strftime(received, '%H:00') AS h, COUNT(*) AS n FROM requests GROUP BY 1;
SELECT to_char(received, 'HH24:00') AS h, COUNT(*) AS n FROM requests GROUP BY 1;
-- dialect: postgres
SELECT date_part('hour', received) AS h, COUNT(*) AS n FROM requests GROUP BY 1;
-- dialect: snowflake
-- duckdb: SELECT HOUR(received) AS h, DATE_TRUNC('DAY', received) AS d, COUNT(*) AS n FROM requests GROUP BY 1, 2;
SELECT HOUR(received) AS h, DATE_TRUNC('DAY', received) AS d, COUNT(*) AS n FROM requests GROUP BY 1, 2;
-- dialect: tsql
SELECT DATEPART(HOUR, received) AS h, COUNT(*) AS n FROM requests GROUP BY DATEPART(HOUR, received);
-- dialect: tsql
-- duckdb: SELECT CAST(DATE_TRUNC('month', opened) AS DATE) AS m, COUNT(*) AS n FROM requests GROUP BY 1;
SELECT DATEADD(month, DATEDIFF(month, 0, opened), 0) AS m, COUNT(*) AS n FROM requests GROUP BY DATEADD(month, DATEDIFF(month, 0, opened), 0);
-- dialect: postgres
-- duckdb: SELECT COUNT(*) FROM requests WHERE regexp_matches(complaint, 'noise|heat', 'i');
SELECT COUNT(*) FROM requests WHERE complaint ~* 'noise|heat';
-- dialect: postgres
-- duckdb: SELECT COUNT(*) FROM requests WHERE NOT regexp_matches(complaint, '^NOISE', 'i');
SELECT COUNT(*) FROM requests WHERE complaint !~* '^NOISE';
-- dialect: bigquery
-- duckdb: SELECT split_part(complaint, ' - ', 2) AS kind, COUNT(*) AS n FROM requests WHERE complaint LIKE 'noise - %' GROUP BY kind;
SELECT SPLIT(complaint, ' - ')[OFFSET(1)] AS kind, COUNT(*) AS n FROM city.requests WHERE complaint LIKE 'noise - %' GROUP BY kind;
-- dialect: bigquery
-- duckdb: SELECT split_part(complaint, ' - ', 1) AS kind, COUNT(*) AS n FROM requests GROUP BY kind;
SELECT SPLIT(complaint, ' - ')[SAFE_OFFSET(0)] AS kind, COUNT(*) AS n FROM city.requests GROUP BY kind;
-- dialect: postgres
-- duckdb: SELECT COUNT(*) FROM requests WHERE received >= TIMESTAMP '2024-01-05 00:00:00';
SELECT COUNT(*) FROM requests WHERE received >= TO_TIMESTAMP('2024-01-05', 'YYYY-MM-DD');
-- dialect: postgres
-- duckdb: SELECT borough, SUM(CASE WHEN status = 'open' THEN 1 ELSE 0 END) / COUNT(*) AS share FROM requests GROUP BY borough;
SELECT borough, SUM(CASE WHEN status = 'open' THEN 1 ELSE 0 END)::NUMERIC / COUNT(*) AS share FROM requests GROUP BY borough;
-- dialect: tsql
-- duckdb: SELECT borough, COUNT(*) FILTER (WHERE status = 'open') AS open, COUNT(*) FILTER (WHERE status = 'closed') AS closed FROM requests GROUP BY borough;
SELECT borough, [open], [closed] FROM (SELECT borough, status FROM requests) AS s PIVOT (COUNT(status) FOR status IN ([open], [closed])) AS p;
SELECT "union", COUNT(*) AS n FROM requests GROUP BY "union";
-- refused: cannot parse the SQL: something is missing near ','
SELECT union, COUNT(*) AS n FROM requests GROUP BY union;
-- dialect: snowflake
-- duckdb: SELECT borough, COUNT(*) FILTER (WHERE status = 'open') AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM requests GROUP BY borough;
SELECT borough, COUNT_IF(status = 'open') AS n, RATIO_TO_REPORT(COUNT(*)) OVER () AS share FROM requests GROUP BY borough;
-- dialect: snowflake
-- duckdb: SELECT borough, COUNT(*) AS n FROM requests WHERE regexp_matches(complaint, '.*noise.*') GROUP BY borough;
SELECT borough, COUNT(*) AS n FROM requests WHERE REGEXP_LIKE(complaint, '.*noise.*') GROUP BY borough;
SELECT borough, AVG(days) FILTER (WHERE status = 'closed') AS mean, MEDIAN(days) AS middle FROM requests GROUP BY borough;
SELECT borough, SUM(days * urgent) AS weighted FROM requests GROUP BY borough;
SELECT borough, SUM(days * urgent) / SUM(urgent) AS mean FROM requests GROUP BY borough;
