-- Statements over requests to a city, as BI tools, dbt and analysts of several databases write them.

-- dialect: postgres
SELECT date_trunc('month', opened)::date AS month, count(*) AS requests, count(*) FILTER (WHERE status = 'closed') AS closed, round(100.0 * count(*) FILTER (WHERE status = 'closed') / nullif(count(*), 0), 9) AS closed_pct FROM requests GROUP BY 1 ORDER BY 1;
-- dialect: bigquery
-- duckdb: SELECT STRFTIME(opened, '%Y-%m') AS month, COUNT_IF(status = 'open') AS open_n, COUNT_IF(status = 'open') / COUNT(*) AS share FROM requests GROUP BY 1 ORDER BY 1;
SELECT FORMAT_DATE('%Y-%m', opened) AS month, COUNTIF(status = 'open') AS open_n, SAFE_DIVIDE(COUNTIF(status = 'open'), COUNT(*)) AS share FROM `city.requests` GROUP BY month ORDER BY month;
-- dialect: bigquery
-- duckdb: SELECT borough, QUANTILE_DISC(days, 0.5) AS p50 FROM requests GROUP BY borough;
SELECT borough, APPROX_QUANTILES(days, 100)[OFFSET(50)] AS p50 FROM requests GROUP BY borough;
-- dialect: tsql
-- duckdb: SELECT complaint, COUNT(*) AS n FROM requests WHERE opened >= '2024-01-01' AND opened < '2024-07-01' GROUP BY complaint ORDER BY n DESC LIMIT 3;
SELECT TOP (3) complaint, COUNT_BIG(*) AS n FROM dbo.requests WHERE opened >= '20240101' AND opened < '20240701' GROUP BY complaint ORDER BY n DESC;
-- dialect: tsql
-- duckdb: SELECT STRFTIME(opened, '%Y-%m') AS ym, SUM(CASE WHEN status = 'open' THEN 1 ELSE 0 END) AS open_n FROM requests GROUP BY 1 ORDER BY 1;
SELECT CONVERT(varchar(7), opened, 120) AS ym, SUM(IIF(status = 'open', 1, 0)) AS open_n FROM requests GROUP BY CONVERT(varchar(7), opened, 120) ORDER BY ym;
-- dialect: tsql
-- duckdb: SELECT MAKE_DATE(YEAR(opened), MONTH(opened), 1) AS month, COUNT(*) AS n FROM requests GROUP BY 1 ORDER BY 1;
SELECT DATEFROMPARTS(YEAR(opened), MONTH(opened), 1) AS month, COUNT(*) AS n FROM requests GROUP BY DATEFROMPARTS(YEAR(opened), MONTH(opened), 1) ORDER BY 1;
-- dialect: mysql
-- duckdb: SELECT STRFTIME(opened, '%Y-%m') AS ym, COUNT_IF(status = 'open') AS open_n, COUNT_IF(status = 'closed') AS closed_n FROM requests GROUP BY ym ORDER BY ym;
SELECT DATE_FORMAT(opened, '%Y-%m') AS ym, SUM(status = 'open') AS open_n, SUM(status = 'closed') AS closed_n FROM requests GROUP BY ym ORDER BY ym;
-- dialect: mysql
-- duckdb: SELECT COALESCE(borough, 'Total') AS borough, COUNT(*) AS n, AVG(days) AS mean FROM requests GROUP BY ROLLUP (borough);
SELECT IFNULL(borough, 'Total') AS borough, COUNT(*) AS n, AVG(days) AS mean FROM requests GROUP BY borough WITH ROLLUP;
-- dialect: mysql
-- duckdb: SELECT borough, COUNT(*) AS n FROM requests WHERE status IN ('open', 'assigned') GROUP BY borough;
SELECT borough, COUNT(*) AS n FROM requests WHERE FIND_IN_SET(status, 'open,assigned') > 0 GROUP BY borough;
-- dialect: snowflake
-- duckdb: SELECT complaint, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM requests GROUP BY complaint;
SELECT complaint, COUNT(*) AS n, RATIO_TO_REPORT(COUNT(*)) OVER () AS share FROM requests GROUP BY complaint;
-- dialect: snowflake
-- duckdb: SELECT STRFTIME(opened, '%Y-%m') AS month, CASE status WHEN 'open' THEN 'todo' WHEN 'assigned' THEN 'todo' ELSE 'done' END AS state, COUNT(*) AS n FROM requests GROUP BY 1, 2;
SELECT TO_CHAR(opened, 'YYYY-MM') AS month, DECODE(status, 'open', 'todo', 'assigned', 'todo', 'done') AS state, COUNT(*) AS n FROM requests GROUP BY 1, 2;
-- dialect: snowflake
-- duckdb: SELECT borough, COUNT(*) AS n FROM requests WHERE complaint ILIKE 'noise%' OR complaint ILIKE 'heat%' GROUP BY borough;
SELECT borough, COUNT(*) AS n FROM requests WHERE complaint ILIKE ANY ('NOISE%', 'heat%') GROUP BY borough;
SELECT "requests"."borough" AS "borough", SUM(1) AS "sum:Number of Records:ok", SUM(CASE WHEN ("requests"."status" = 'open') THEN 1 WHEN NOT ("requests"."status" = 'open') THEN 0 ELSE NULL END) AS "sum:open:ok" FROM "requests" "requests" WHERE ("requests"."opened" >= (DATE '2024-02-01')) GROUP BY 1 HAVING (COUNT(1) > 0);
-- dialect: redshift
-- duckdb: SELECT borough AS "requests.borough", STRFTIME(opened, '%Y-%m') AS "requests.opened_month", COUNT(*) AS "requests.count", COALESCE(SUM(days), 0) AS "requests.total_days" FROM requests GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 500;
SELECT requests.borough AS "requests.borough", (TO_CHAR(DATE_TRUNC('month', requests.opened), 'YYYY-MM')) AS "requests.opened_month", COUNT(*) AS "requests.count", COALESCE(SUM(requests.days), 0) AS "requests.total_days" FROM public.requests AS requests WHERE ((( requests.opened ) >= ((DATE '2024-01-01')) AND ( requests.opened ) < ((DATE '2025-01-01')))) GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 500;
-- dialect: tsql
-- duckdb: SELECT borough, COUNT(*) AS a0 FROM requests WHERE status = 'open' GROUP BY borough;
select top (1000001) [t0].[borough], COUNT_BIG(*) as [a0] from (select [_].[borough] as [borough], [_].[status] as [status] from [dbo].[requests] as [_] where [_].[status] = N'open') as [t0] group by [t0].[borough];
SELECT complaint AS complaint, COUNT(*) AS "COUNT(*)" FROM (SELECT * FROM requests) AS virtual_table WHERE opened >= '2024-03-01' AND opened < '2024-09-01' GROUP BY complaint ORDER BY "COUNT(*)" DESC LIMIT 4;
with source as (select * from requests), renamed as (select borough as borough_code, complaint as complaint_type, opened as opened_on, days as days_open from source), final as (select borough_code, count(*) as n_requests, avg(days_open) as mean_days from renamed group by 1) select * from final;
WITH params AS (SELECT DATE '2024-02-01' AS from_day, DATE '2024-07-01' AS to_day) SELECT borough, COUNT(*) AS n FROM requests, params WHERE opened >= from_day AND opened < to_day GROUP BY borough;
SELECT borough, COUNT(*) AS n FROM requests r WHERE EXISTS (SELECT 1 FROM boroughs b WHERE b.borough = r.borough AND b.population > 1500) GROUP BY borough;
SELECT (SELECT b.name FROM boroughs b WHERE b.borough = r.borough) AS name, COUNT(*) AS n FROM requests r GROUP BY 1;
SELECT s.label, COUNT(*) AS n FROM requests r JOIN (VALUES ('open', 'to do'), ('assigned', 'to do'), ('closed', 'done')) AS s(status, label) ON r.status = s.status GROUP BY s.label;
SELECT borough || ' / ' || status AS key, COUNT(*) AS n FROM requests GROUP BY key ORDER BY key;
SELECT CONCAT(YEAR(opened), '-Q', QUARTER(opened)) AS quarter, COUNT(*) AS n FROM requests GROUP BY quarter ORDER BY quarter;
SELECT SPLIT_PART(complaint, ' - ', 1) AS family, COUNT(*) AS n, COUNT(*) FILTER (WHERE complaint LIKE '% - %') AS detailed FROM requests GROUP BY family;
SELECT CASE WHEN EXTRACT(ISODOW FROM opened) IN (6, 7) THEN 'weekend' ELSE 'weekday' END AS part, COUNT(*) AS n, AVG(days) AS mean FROM requests GROUP BY part;
WITH m AS (SELECT MONTH(opened) AS m, COUNT(*) AS n FROM requests GROUP BY 1) SELECT m, n, 100.0 * n / FIRST_VALUE(n) OVER (ORDER BY m) AS index_100 FROM m;
WITH d AS (SELECT CAST(received AS DATE) AS d, COUNT(*) AS n FROM requests GROUP BY 1) SELECT d, n, AVG(n) OVER (ORDER BY d ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week_mean FROM d ORDER BY d;
WITH c AS (SELECT complaint, COUNT(*) AS n FROM requests GROUP BY complaint), r AS (SELECT complaint, n, SUM(n) OVER (ORDER BY n DESC) / SUM(n) OVER () AS cumulative FROM c) SELECT complaint, n FROM r WHERE cumulative <= 0.8 ORDER BY n DESC;
WITH b AS (SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough) SELECT borough, n, (n - AVG(n) OVER ()) / STDDEV(n) OVER () AS z FROM b;
SELECT 'requests' AS metric, COUNT(*) AS value FROM requests UNION ALL SELECT 'open', COUNT(*) FROM requests WHERE status = 'open' UNION ALL SELECT 'mean days', AVG(days) FROM requests;
-- refused: this GROUPING() is not supported
SELECT CASE WHEN GROUPING(borough) = 0 THEN 'borough' ELSE 'status' END AS what, COALESCE(borough, status) AS value, COUNT(*) AS n FROM requests GROUP BY GROUPING SETS ((borough), (status));
SELECT borough, COUNT(*) AS n FROM requests WHERE (complaint, status) IN (('heat', 'open'), ('water', 'closed')) GROUP BY borough;
SELECT LEAST(days, 20) AS days, COUNT(*) AS n FROM requests GROUP BY 1 ORDER BY 1;
SELECT days / 7 AS weeks, COUNT(*) AS n FROM requests WHERE days < 28 GROUP BY weeks;
WITH o AS (SELECT borough, COUNT(*) AS n FROM requests WHERE status = 'open' GROUP BY borough), c AS (SELECT borough, COUNT(*) AS n FROM requests WHERE status = 'closed' GROUP BY borough) SELECT COALESCE(o.borough, c.borough) AS borough, COALESCE(o.n, 0) AS open_n, COALESCE(c.n, 0) AS closed_n FROM o FULL OUTER JOIN c ON o.borough = c.borough;
SELECT DATE_TRUNC('week', opened) AS week, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY DATE_TRUNC('week', opened)) AS change FROM requests WHERE opened >= DATE '2024-01-01' GROUP BY 1 ORDER BY 1;
-- dialect: bigquery
-- duckdb: SELECT borough, COUNT(*) AS n FROM requests WHERE regexp_matches(complaint, '^noise') GROUP BY borough;
SELECT borough, COUNT(*) AS n FROM requests WHERE REGEXP_CONTAINS(complaint, r'^noise') GROUP BY borough;
-- dialect: postgres
-- duckdb: SELECT borough, COUNT(*) AS n FROM requests WHERE complaint LIKE 'noise -%' GROUP BY borough;
SELECT borough, COUNT(*) AS n FROM requests WHERE complaint LIKE 'noise\ -%' GROUP BY borough;
-- dialect: tsql
-- duckdb: SELECT b.name, b.population // 100 AS hundreds, COUNT(*) AS n FROM requests r JOIN boroughs b ON b.borough = r.borough GROUP BY 1, 2;
SELECT b.name, b.population / 100 AS hundreds, COUNT(*) AS n FROM requests r JOIN boroughs b ON b.borough = r.borough GROUP BY b.name, b.population / 100;
