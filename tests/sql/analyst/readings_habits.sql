-- Statements over readings of electricity meters, as BI tools, dbt and analysts of several databases write them.

-- dialect: postgres
-- duckdb: SELECT date_trunc('hour', read_at) AS hour, zone, count(*) AS n, avg(temperature) AS mean FROM readings WHERE read_at >= '2024-03-02' AND read_at < '2024-03-03' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT date_trunc('hour', read_at) AS hour, zone, count(*) AS n, avg(temperature) AS mean FROM readings WHERE read_at >= timestamp '2024-03-02 00:00:00' AND read_at < timestamp '2024-03-02 00:00:00' + interval '1 day' GROUP BY 1, 2 ORDER BY 1, 2;
-- dialect: postgres
-- duckdb: SELECT EXTRACT(HOUR FROM read_at) AS hour, AVG(price) AS mean FROM readings WHERE CAST(read_at AS DATE) = '2024-03-04' GROUP BY 1 ORDER BY 1;
SELECT extract(hour from read_at)::int AS hour, avg(price) AS mean FROM readings WHERE read_at::date = '2024-03-04' GROUP BY 1 ORDER BY 1;
-- dialect: postgres
-- duckdb: SELECT STRFTIME(read_at, '%Y-%m-%d %H:00') AS hour, COUNT(*) AS n FROM readings WHERE zone = 'north' GROUP BY 1;
SELECT to_char(read_at, 'YYYY-MM-DD HH24:00') AS hour, count(*) AS n FROM readings WHERE zone = 'north' GROUP BY 1;
-- dialect: bigquery
-- duckdb: SELECT DATE_TRUNC('hour', read_at) AS hour, COUNT(*) AS n FROM readings GROUP BY 1 ORDER BY 1;
SELECT TIMESTAMP_TRUNC(read_at, HOUR) AS hour, COUNT(*) AS n FROM readings GROUP BY hour ORDER BY hour;
-- dialect: bigquery
-- duckdb: SELECT CAST(read_at AS DATE) AS d, AVG(temperature) AS mean FROM readings GROUP BY 1 ORDER BY 1;
SELECT DATE(read_at) AS d, AVG(temperature) AS mean FROM readings GROUP BY d ORDER BY d;
-- dialect: snowflake
-- duckdb: SELECT TIME_BUCKET(INTERVAL '6 hours', read_at) AS slot, COUNT(*) AS n FROM readings GROUP BY 1 ORDER BY 1;
SELECT TIME_SLICE(read_at, 6, 'HOUR') AS slot, COUNT(*) AS n FROM readings GROUP BY slot ORDER BY slot;
-- dialect: snowflake
-- duckdb: SELECT HOUR(read_at) AS h, COUNT(*) AS n FROM readings GROUP BY 1 ORDER BY 1;
SELECT DATE_PART('hour', read_at) AS h, COUNT(*) AS n FROM readings GROUP BY 1 ORDER BY 1;
-- dialect: tsql
-- duckdb: SELECT HOUR(read_at) AS h, COUNT(*) AS n FROM readings WHERE zone IN ('north', 'east') GROUP BY 1;
SELECT DATEPART(HOUR, read_at) AS h, COUNT(*) AS n FROM readings WHERE zone IN (N'north', N'east') GROUP BY DATEPART(HOUR, read_at);
-- dialect: tsql
-- duckdb: SELECT DATE_TRUNC('hour', read_at) AS hour, COUNT(*) AS n FROM readings GROUP BY 1;
SELECT DATEADD(hour, DATEDIFF(hour, 0, read_at), 0) AS hour, COUNT(*) AS n FROM readings GROUP BY DATEADD(hour, DATEDIFF(hour, 0, read_at), 0);
-- dialect: tsql
-- duckdb: SELECT CAST(read_at AS DATE) AS d, COUNT(*) AS n FROM readings GROUP BY 1 ORDER BY 1;
SELECT CONVERT(date, read_at) AS d, COUNT(*) AS n FROM readings GROUP BY CONVERT(date, read_at) ORDER BY d;
-- dialect: mysql
-- duckdb: SELECT STRFTIME(read_at, '%Y-%m-%d %H:00') AS hour, COUNT(*) AS n FROM readings GROUP BY 1 ORDER BY 1;
SELECT DATE_FORMAT(read_at, '%Y-%m-%d %H:00') AS hour, COUNT(*) AS n FROM readings GROUP BY 1 ORDER BY 1;
-- dialect: mysql
-- duckdb: SELECT HOUR(read_at) AS h, zone, AVG(temperature) AS mean FROM readings WHERE CAST(read_at AS DATE) BETWEEN '2024-03-02' AND '2024-03-04' GROUP BY 1, 2;
SELECT HOUR(read_at) AS h, zone, AVG(temperature) AS mean FROM readings WHERE DATE(read_at) BETWEEN '2024-03-02' AND '2024-03-04' GROUP BY HOUR(read_at), zone;
-- dialect: spark
-- duckdb: SELECT DAYNAME(read_at)[1:3] AS d, COUNT(*) AS n FROM readings GROUP BY 1;
SELECT date_format(read_at, 'E') AS d, count(*) AS n FROM readings GROUP BY 1;
-- dialect: spark
-- duckdb: SELECT zone, SUM(CASE WHEN kind = 'solar' THEN 1 ELSE 0 END) AS solar, AVG(price) AS mean FROM readings GROUP BY zone;
SELECT zone, sum(if(kind = 'solar', 1, 0)) AS solar, mean(price) AS mean FROM readings GROUP BY zone;
SELECT zone, SUM(price * temperature) / SUM(price) AS weighted FROM readings GROUP BY zone;
SELECT zone, SUM(kwh * price) AS revenue, SUM(kwh * price) / SUM(kwh) AS mean_price FROM readings GROUP BY zone;
SELECT CASE WHEN kwh < 5 THEN 'low' WHEN kwh < 20 THEN 'mid' ELSE 'high' END AS use, zone, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY zone), 9) AS pct FROM readings GROUP BY 1, 2;
SELECT CASE WHEN temperature < 0 THEN 'frost' WHEN temperature BETWEEN 0 AND 15 THEN 'cool' ELSE 'warm' END AS weather, AVG(price) AS mean, COUNT(*) AS n FROM readings GROUP BY weather;
SELECT DAYNAME(read_at) AS day, HOUR(read_at) AS h, COUNT(*) AS n FROM readings GROUP BY DAYNAME(read_at), ISODOW(read_at), HOUR(read_at) ORDER BY ISODOW(read_at), h;
WITH h AS (SELECT DATE_TRUNC('hour', read_at) AS h, COUNT(*) AS n FROM readings GROUP BY 1) SELECT h, n, SUM(n) OVER (ORDER BY h) AS running FROM h WHERE h < TIMESTAMP '2024-03-03';
WITH h AS (SELECT HOUR(read_at) AS h, COUNT(*) AS n FROM readings GROUP BY 1) SELECT h, n FROM h WHERE n = (SELECT MAX(n) FROM h);
WITH h AS (SELECT CAST(read_at AS DATE) AS d, HOUR(read_at) AS h, COUNT(*) AS n FROM readings GROUP BY 1, 2) SELECT h, AVG(n) AS per_day, MAX(n) AS most FROM h GROUP BY h ORDER BY h;
-- refused: write LAG(n) OVER (ORDER BY …)
WITH d AS (SELECT CAST(read_at AS DATE) AS d, COUNT(*) AS n FROM readings GROUP BY 1) SELECT a.d, a.n, b.n AS day_before FROM d a LEFT JOIN d b ON b.d = a.d - INTERVAL 1 DAY;
SELECT zone, COUNT(*) AS n, COUNT(*) > AVG(COUNT(*)) OVER () AS above_mean FROM readings GROUP BY zone;
SELECT zone, kind, COUNT(*) AS n, PERCENT_RANK() OVER (PARTITION BY zone ORDER BY COUNT(*)) AS pr, CUME_DIST() OVER (PARTITION BY zone ORDER BY COUNT(*)) AS cd FROM readings GROUP BY zone, kind;
SELECT z.area, z.name, COUNT(*) AS n FROM readings r JOIN zones z ON z.zone = r.zone GROUP BY ROLLUP (z.area, z.name) ORDER BY z.area NULLS LAST, z.name NULLS LAST;
SELECT r.zone, COUNT(*) * 1000.0 / (SELECT z.households FROM zones z WHERE z.zone = r.zone) AS per_1000 FROM readings r GROUP BY r.zone;
SELECT z.name, COUNT(*) / z.households AS per_household, COUNT(*) / SUM(COUNT(*)) OVER () - z.households * 1.0 / (SELECT SUM(households) FROM zones) AS excess FROM readings r JOIN zones z USING (zone) GROUP BY z.name, z.households;
SELECT zone, month, AVG(temperature) AS mean, AVG(temperature) - AVG(AVG(temperature)) OVER (PARTITION BY zone) AS anomaly FROM readings GROUP BY zone, month;
SELECT zone, AVG(price) AS mean, MEDIAN(price) AS median, QUANTILE_CONT(price, 0.75) - QUANTILE_CONT(price, 0.25) AS iqr FROM readings GROUP BY zone;
SELECT COUNT(*) AS n, COUNT(*) / 7.0 AS per_day, COUNT(*) / (7 * 24.0) AS per_hour FROM readings;
SELECT zone FROM readings GROUP BY zone HAVING COUNT(*) FILTER (WHERE kind = 'solar') > COUNT(*) FILTER (WHERE kind = 'wind') ORDER BY zone;
-- dialect: tsql
-- duckdb: SELECT STRFTIME(read_at, '%Y-%m-%d %H') AS hour, COUNT(*) AS n FROM readings GROUP BY 1;
SELECT CONVERT(varchar(13), read_at, 120) AS hour, COUNT(*) AS n FROM readings GROUP BY CONVERT(varchar(13), read_at, 120);
