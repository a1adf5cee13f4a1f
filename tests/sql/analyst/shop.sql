-- Statements over orders of a web shop, in the dialects and habits of several databases and tools.

-- dialect: bigquery
SELECT country, SUM(amount) AS revenue FROM `my-project.shop.orders` GROUP BY country ORDER BY revenue DESC LIMIT 5;
-- dialect: bigquery
SELECT DATE_TRUNC(ordered, WEEK(MONDAY)) AS wk, COUNT(*) AS orders FROM shop.orders GROUP BY wk ORDER BY wk;
-- dialect: bigquery
SELECT device, SAFE_DIVIDE(SUM(IF(returned, 1, 0)), COUNT(*)) AS return_rate FROM shop.orders GROUP BY device;
-- dialect: bigquery
SELECT country, channel, COUNT(*) AS n FROM shop.orders WHERE TRUE GROUP BY country, channel QUALIFY ROW_NUMBER() OVER (PARTITION BY country ORDER BY COUNT(*) DESC) <= 2;
-- dialect: bigquery
-- duckdb: SELECT DAYOFWEEK(ordered) + 1 AS dow, COUNT(*) AS n FROM orders GROUP BY dow;
SELECT EXTRACT(DAYOFWEEK FROM ordered) AS dow, COUNT(*) AS n FROM shop.orders GROUP BY dow;
-- dialect: bigquery
SELECT DATE_DIFF(DATE '2024-12-31', ordered, DAY) AS age, COUNT(*) AS n FROM shop.orders WHERE ordered >= '2024-12-01' GROUP BY age;
-- dialect: bigquery
SELECT country, SUM(amount * items) AS v FROM shop.orders GROUP BY country;
-- dialect: bigquery
-- duckdb: SELECT CAST(ordered AS TIMESTAMP) AS ts, COUNT(*) AS n FROM orders WHERE ordered < '2024-01-08' GROUP BY ts;
SELECT CAST(ordered AS TIMESTAMP) AS ts, COUNT(*) AS n FROM shop.orders WHERE ordered < '2024-01-08' GROUP BY ts;
-- dialect: bigquery
SELECT channel, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM shop.orders GROUP BY channel;
-- dialect: bigquery
-- duckdb: SELECT country, COUNT(*) FILTER (WHERE device = 'mobile') AS n_mobile, COUNT(*) FILTER (WHERE device = 'desktop') AS n_desktop FROM orders GROUP BY country;
SELECT * FROM (SELECT country, device FROM shop.orders) PIVOT (COUNT(*) AS n FOR device IN ('mobile', 'desktop'));
-- dialect: mysql
SELECT DATE(ordered) AS d, COUNT(*) AS n FROM `shop`.`orders` GROUP BY DATE(ordered) ORDER BY d DESC LIMIT 7;
-- dialect: mysql
SELECT DATE_FORMAT(ordered, '%Y-%m-01') AS m, SUM(items) AS items FROM shop.orders GROUP BY m;
-- dialect: mysql
SELECT country, AVG(items) AS mean_items, STD(items) AS sd FROM orders GROUP BY country;
-- dialect: mysql
SELECT COUNT(*) FROM orders WHERE ordered >= DATE_SUB('2024-12-31', INTERVAL 1 MONTH);
-- dialect: mysql
SELECT MONTHNAME(ordered) AS m, COUNT(*) AS n FROM orders GROUP BY m;
-- dialect: mysql
-- duckdb: SELECT DAYOFWEEK(ordered) + 1 AS d, COUNT(*) AS n FROM orders GROUP BY d;
SELECT DAYOFWEEK(ordered) AS d, COUNT(*) AS n FROM orders GROUP BY d;
-- dialect: mysql
SELECT device, COUNT(*) AS n FROM orders GROUP BY device ORDER BY n DESC LIMIT 0, 2;
-- dialect: mysql
SELECT country, SUM(CASE channel WHEN 'ads' THEN amount ELSE 0 END) AS ads_revenue FROM orders GROUP BY country;
-- dialect: snowflake
SELECT TO_DATE(ordered) AS d, COUNT(*) AS n, AVG(COUNT(*)) OVER (ORDER BY d ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS ma7 FROM shop.public.orders GROUP BY d;
-- dialect: snowflake
SELECT DATE_TRUNC('month', ordered) AS m, SUM(amount) AS revenue, revenue / LAG(revenue) OVER (ORDER BY m) - 1 AS growth FROM orders GROUP BY m ORDER BY m;
-- dialect: snowflake
SELECT country, MONTHNAME(ordered) AS mon, COUNT(*) AS n FROM orders GROUP BY 1, 2;
-- dialect: snowflake
SELECT country, APPROX_PERCENTILE(items, 0.9) AS p90 FROM orders GROUP BY country;
-- dialect: snowflake
SELECT SUM(IFF(channel = 'ads', amount, 0)) / NULLIF(SUM(amount), 0) AS share FROM orders;
-- dialect: snowflake
SELECT TRUNC(ordered, 'month') AS m, COUNT(*) AS n FROM orders GROUP BY m;
-- dialect: redshift
-- refused: a week that begins on Sunday, as redshift counts them, is not supported; use the ISO week, or weeks from Monday
SELECT DATEDIFF(week, '2024-01-01', ordered) AS wk, COUNT(*) AS n FROM orders GROUP BY 1;
-- dialect: redshift
SELECT NVL(channel, 'unknown') AS channel, COUNT(*) AS n FROM orders GROUP BY 1;
-- dialect: postgres
SELECT country, SUM(amount) AS revenue, SUM(SUM(amount)) OVER (ORDER BY country) AS running FROM orders GROUP BY country;
-- dialect: postgres
SELECT ordered::date AS d, COUNT(*) AS n FROM orders WHERE ordered >= date '2024-12-31' - interval '7 days' GROUP BY d;
-- dialect: postgres
-- duckdb: SELECT MONTHNAME(ordered) AS m, COUNT(*) AS n FROM orders GROUP BY 1;
SELECT to_char(ordered, 'FMMonth') AS m, COUNT(*) AS n FROM orders GROUP BY 1;
-- dialect: postgres
SELECT country, DENSE_RANK() OVER (ORDER BY SUM(items) DESC) AS r, SUM(items) AS items FROM orders GROUP BY country ORDER BY r;
-- dialect: tsql
-- refused: WITH TIES or PERCENT is not supported; which groups are equal depends on noise; write a number of groups
SELECT TOP 3 WITH TIES country, COUNT(*) AS n FROM orders GROUP BY country ORDER BY n DESC;
-- dialect: tsql
SELECT CONVERT(DATE, ordered) AS d, COUNT(*) AS n FROM orders GROUP BY CONVERT(DATE, ordered);
-- duckdb: SELECT country, SUM(items) AS "sum:items:ok" FROM orders GROUP BY 1;
SELECT "orders"."country" AS "country", SUM("orders"."items") AS "sum:items:ok" FROM "public"."orders" "orders" GROUP BY 1;
SELECT country, COUNT(*) AS n, FIRST_VALUE(COUNT(*)) OVER (ORDER BY country) AS first FROM orders GROUP BY country;
-- refused: is not supported; it is not a sum over rows
SELECT COUNT(DISTINCT customer) FROM orders;
PIVOT orders ON device USING COUNT(*) GROUP BY country;
SELECT country, MODE(device) AS device FROM orders GROUP BY country;
-- duckdb: SELECT strftime(ordered, '%Y-%m') AS ym, SUM(items) AS items, COUNT(*) AS orders FROM orders GROUP BY ym ORDER BY ym;
-- dialect: bigquery
SELECT FORMAT_DATE('%Y-%m', ordered) AS ym, SUM(items) AS items, COUNT(*) AS orders FROM `shop.orders` GROUP BY ym ORDER BY ym;
-- duckdb: SELECT strftime(ordered, '%Y-%m') AS ym, COUNT(*) AS n FROM orders WHERE country IN ('DE', 'FR') GROUP BY ym;
-- dialect: mysql
SELECT DATE_FORMAT(ordered, '%Y-%m') AS ym, COUNT(*) AS n FROM orders WHERE country IN ('DE', 'FR') GROUP BY ym;
-- duckdb: SELECT year(ordered) || '-Q' || quarter(ordered) AS quarter, count(*) AS n FROM orders GROUP BY 1 ORDER BY 1;
-- dialect: postgres
SELECT to_char(ordered, 'YYYY-"Q"Q') AS quarter, count(*) AS n FROM orders GROUP BY 1 ORDER BY 1;
-- duckdb: SELECT country, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM orders GROUP BY country;
-- dialect: snowflake
SELECT country, RATIO_TO_REPORT(COUNT(*)) OVER () AS share FROM orders GROUP BY country;
SELECT country, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (PARTITION BY country ORDER BY MONTH(ordered)) AS diff, MONTH(ordered) AS m FROM orders GROUP BY country, m;
SELECT channel, AVG(CASE WHEN returned THEN 1.0 ELSE 0 END) AS return_rate FROM orders WHERE channel IS NOT NULL GROUP BY channel;
-- duckdb: SELECT dayofweek(ordered) + 1 AS wd, COUNT(*) AS n FROM orders GROUP BY 1;
-- dialect: tsql
SELECT DATEPART(weekday, ordered) AS wd, COUNT(*) AS n FROM orders GROUP BY DATEPART(weekday, ordered);
-- duckdb: SELECT device, count_if(returned) AS back, avg(items) AS mean_items FROM orders GROUP BY device HAVING count(*) > 100;
-- dialect: spark
SELECT device, count_if(returned) AS back, avg(items) AS mean_items FROM orders GROUP BY device HAVING count(*) > 100;
SELECT CASE WHEN GROUPING(device) = 1 THEN 'all devices' ELSE device END AS device, COUNT(*) AS n FROM orders GROUP BY ROLLUP (device);
SELECT country, device, COUNT(*) AS n FROM orders GROUP BY country, device QUALIFY ROW_NUMBER() OVER (PARTITION BY country ORDER BY COUNT(*) DESC) = 1;
-- duckdb: SELECT least(items // 3, 4) + 1 AS bucket, count(*) AS n FROM orders GROUP BY bucket ORDER BY bucket;
-- dialect: postgres
SELECT width_bucket(items, 0, 12, 4) AS bucket, count(*) AS n FROM orders GROUP BY bucket ORDER BY bucket;
SELECT COUNT(*) AS n, COUNT(channel) AS known, COUNT(*) - COUNT(channel) AS missing FROM orders;
-- duckdb: SELECT YEAR(ordered) AS y, MONTH(ordered) AS m, SUM(items) AS total FROM orders GROUP BY y, m ORDER BY y, m;
-- dialect: mysql
SELECT YEAR(ordered) AS y, MONTH(ordered) AS m, SUM(items) AS total FROM orders GROUP BY y, m ORDER BY y, m;
-- duckdb: SELECT isodow(ordered) - 1 AS wd, COUNT(*) AS n FROM orders GROUP BY wd;
-- dialect: mysql
SELECT WEEKDAY(ordered) AS wd, COUNT(*) AS n FROM orders GROUP BY wd;
-- duckdb: SELECT strftime(ordered, '%Y-%m') AS ym, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY ym;
-- dialect: tsql
SELECT CONVERT(VARCHAR(7), ordered, 120) AS ym, COUNT(*) AS n FROM orders GROUP BY CONVERT(VARCHAR(7), ordered, 120) ORDER BY ym;
-- duckdb: SELECT country, sum(items) FILTER (WHERE device = 'mobile') AS mobile_items, sum(items) AS items FROM orders GROUP BY GROUPING SETS ((country), ());
-- dialect: postgres
SELECT country, sum(items) FILTER (WHERE device = 'mobile') AS mobile_items, sum(items) AS items FROM orders GROUP BY GROUPING SETS ((country), ());
-- duckdb: SELECT country, SUM(IF(returned, items, 0)) AS back FROM orders WHERE ordered >= DATE '2024-07-01' GROUP BY country;
-- dialect: bigquery
SELECT country, SUM(IF(returned, items, 0)) AS back FROM orders WHERE ordered >= DATE '2024-07-01' GROUP BY country;
-- duckdb: SELECT strftime(ordered, '%Y-%m') AS ym, COALESCE(channel, 'none') AS ch, COUNT(*) AS n FROM orders GROUP BY 1, 2;
-- dialect: redshift
SELECT TO_CHAR(ordered, 'YYYY-MM') AS ym, NVL(channel, 'none') AS ch, COUNT(*) AS n FROM orders GROUP BY 1, 2;
SELECT month(ordered) AS m, AVG(COUNT(*)) OVER (ORDER BY month(ordered) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving FROM orders GROUP BY m;
-- refused: amount > 75 cuts through the cell [50, 100) of 'amount', which is counted as one
SELECT country, COUNT(*) FROM orders WHERE amount > 75 GROUP BY country;
-- refused: a single row decides it
SELECT MAX(amount) FROM orders;
-- refused: no attribute is called 'customer'
SELECT customer, COUNT(*) FROM orders GROUP BY customer;
-- refused: CURRENT_DATE is not supported
SELECT country, COUNT(*) AS n FROM orders WHERE ordered > CURRENT_DATE - INTERVAL 30 DAY GROUP BY country;
