-- More statements over readings of electricity meters.

WITH m AS (SELECT month, AVG(temperature) AS mean FROM readings GROUP BY month) SELECT month, mean, mean - LAG(mean) OVER (ORDER BY month) AS change, LEAD(mean) OVER (ORDER BY month) AS next FROM m ORDER BY month;
WITH m AS (SELECT zone, month, COUNT(*) AS n FROM readings GROUP BY 1, 2), p AS (SELECT zone, month, n, LAG(n) OVER (PARTITION BY zone ORDER BY month) AS p FROM m) SELECT zone, month, n - p AS change FROM p WHERE p IS NOT NULL AND zone <> 'west' ORDER BY zone, month;
SELECT zone, COUNT(*) AS n, MAX(COUNT(*)) OVER () - COUNT(*) AS behind FROM readings GROUP BY zone ORDER BY behind;
SELECT zone, kind, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY zone ORDER BY COUNT(*) DESC) AS running FROM readings GROUP BY zone, kind;
SELECT month, COUNT(*) AS n, MAX(COUNT(*)) OVER (ORDER BY month) AS record FROM readings GROUP BY month ORDER BY month;
SELECT zone, n, n / MAX(n) OVER () AS of_most FROM (SELECT zone, COUNT(*) AS n FROM readings GROUP BY zone) t;
SELECT zone, CASE WHEN n > avg_n THEN 'above' ELSE 'below' END AS side, n FROM (SELECT zone, COUNT(*) AS n, AVG(COUNT(*)) OVER () AS avg_n FROM readings GROUP BY zone) t;
SELECT zone, CASE WHEN SUM(temperature) > 20000 THEN 'warm' ELSE 'cold' END AS climate, SUM(temperature) AS total FROM readings GROUP BY zone;
SELECT zone, CASE WHEN RANK() OVER (ORDER BY COUNT(*) DESC) <= 2 THEN 'top' ELSE 'rest' END AS tier, COUNT(*) AS n FROM readings GROUP BY zone;
SELECT zone, NTILE(2) OVER (ORDER BY COUNT(*)) AS half, COUNT(*) AS n FROM readings GROUP BY zone;
SELECT z.name, 1.0 * COUNT(r.zone) / z.households AS per_household FROM zones z LEFT JOIN readings r ON r.zone = z.zone GROUP BY z.name, z.households ORDER BY per_household DESC;
SELECT z.area, COUNT(*) AS n, SUM(r.temperature) / COUNT(*) AS mean FROM zones z JOIN readings r ON z.zone = r.zone AND r.kind = 'solar' GROUP BY z.area;
SELECT z.name, COUNT(*) AS n FROM readings r JOIN zones z ON z.zone = r.zone WHERE z.households BETWEEN 200 AND 350 GROUP BY z.name;
SELECT z.name, COUNT(*) AS n, SUM(z.households) AS h FROM readings r JOIN zones z ON z.zone = r.zone GROUP BY z.name;
SELECT COALESCE(z.area, 'Total') AS area, COUNT(*) AS n FROM readings r JOIN zones z ON z.zone = r.zone GROUP BY ROLLUP (z.area);
SELECT COALESCE(CAST(month AS VARCHAR), 'Total') AS month, zone, COUNT(*) AS n FROM readings GROUP BY GROUPING SETS ((month, zone), (zone));
SELECT zone, n FROM (SELECT zone, COUNT(*) AS n FROM readings GROUP BY zone UNION ALL SELECT 'all' AS zone, COUNT(*) AS n FROM readings) u WHERE n > 500;
SELECT AVG(n) AS mean_per_hour FROM (SELECT HOUR(read_at) AS h, COUNT(*) AS n FROM readings GROUP BY 1) t;
SELECT h, n FROM (SELECT HOUR(read_at) AS h, COUNT(*) AS n FROM readings GROUP BY 1) t ORDER BY n DESC LIMIT 3;
SELECT EXTRACT(HOUR FROM read_at) AS h, SUM(kwh) AS kwh, AVG(temperature) AS mean FROM readings GROUP BY 1 ORDER BY 1;
SELECT CASE WHEN HOUR(read_at) < 6 THEN 'night' WHEN HOUR(read_at) < 12 THEN 'morning' WHEN HOUR(read_at) < 18 THEN 'afternoon' ELSE 'evening' END AS part, COUNT(*) AS n FROM readings GROUP BY part ORDER BY MIN(HOUR(read_at));
-- dialect: duckdb
SELECT DAYNAME(read_at) AS d, HOUR(read_at) AS h, COUNT(*) AS n FROM readings GROUP BY 1, 2, ISODOW(read_at) ORDER BY ISODOW(read_at), h;
SELECT DATE_TRUNC('hour', read_at) AS t, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('hour', read_at)) AS running FROM readings WHERE read_at < '2024-03-02' GROUP BY 1 ORDER BY 1;
SELECT DATE_TRUNC('day', read_at) AS d, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY DATE_TRUNC('day', read_at)) AS change FROM readings GROUP BY 1 ORDER BY 1;
SELECT zone, SUM(kwh * price) / SUM(kwh) AS price, AVG(kwh) AS kwh FROM readings WHERE kwh >= 5 GROUP BY zone;
SELECT kind, SUM(temperature * price) AS product, AVG(temperature * price) AS mean FROM readings GROUP BY kind;
SELECT zone, SUM((temperature - 10) * price) AS s FROM readings GROUP BY zone;
SELECT zone, AVG(CASE WHEN kind = 'solar' THEN kwh END) AS solar, AVG(CASE WHEN kind = 'wind' THEN kwh END) AS wind FROM readings GROUP BY zone;
SELECT zone, COUNT(*) FILTER (WHERE kwh < 10) * 100.0 / COUNT(*) AS low_pct FROM readings GROUP BY zone HAVING COUNT(*) > 100 ORDER BY low_pct DESC;
-- dialect: bigquery
-- duckdb: SELECT DATE_TRUNC('hour', read_at) AS t, COUNT(*) AS n FROM readings GROUP BY 1 ORDER BY 1;
SELECT DATETIME_TRUNC(read_at, HOUR) AS t, COUNT(*) AS n FROM grid.readings GROUP BY t ORDER BY t;
-- dialect: snowflake
-- duckdb: SELECT zone, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM readings GROUP BY zone;
SELECT zone, COUNT(*) AS n, RATIO_TO_REPORT(COUNT(*)) OVER () AS share FROM readings GROUP BY zone ORDER BY share DESC;
-- dialect: tsql
-- duckdb: SELECT HOUR(read_at) AS h, COUNT(*) AS n FROM readings GROUP BY 1;
SELECT DATEPART(hour, read_at) AS h, COUNT(*) AS n FROM readings GROUP BY DATEPART(hour, read_at) ORDER BY h;
-- dialect: mysql
-- duckdb: SELECT HOUR(read_at) AS h, COUNT(*) AS n FROM readings GROUP BY 1;
SELECT HOUR(read_at) AS h, COUNT(*) AS n FROM readings GROUP BY HOUR(read_at) ORDER BY h;
-- dialect: postgres
-- duckdb: SELECT DATE_TRUNC('hour', read_at) AS t, COUNT(*) AS n FROM readings WHERE read_at >= TIMESTAMP '2024-03-03 00:00:00' GROUP BY 1;
SELECT date_trunc('hour', read_at) AS t, count(*) AS n FROM readings WHERE read_at >= TO_TIMESTAMP('2024-03-03 00:00', 'YYYY-MM-DD HH24:MI') GROUP BY 1;
-- dialect: spark
-- duckdb: SELECT zone, COUNT(*) FILTER (WHERE kind = 'solar') AS solar FROM readings GROUP BY zone;
SELECT zone, sum(if(kind = 'solar', 1, 0)) AS solar FROM readings GROUP BY zone;
SELECT z.name, AVG(kwh) AS mean, SUM(kwh) / MAX(z.households) AS per_household FROM readings r JOIN zones z USING (zone) GROUP BY z.name;
SELECT zone, kind, SUM(kwh) AS total, SUM(SUM(kwh)) OVER (PARTITION BY zone) AS zone_total FROM readings GROUP BY zone, kind;
SELECT kind, SUM(kwh * price) AS cost, SUM(kwh * price) / SUM(kwh) AS mean_price FROM readings GROUP BY kind;
SELECT DATE_TRUNC('day', read_at) AS d, SUM(kwh) AS kwh, SUM(SUM(kwh)) OVER (ORDER BY DATE_TRUNC('day', read_at)) AS running FROM readings GROUP BY 1 ORDER BY 1;
SELECT HOUR(read_at) AS h, AVG(temperature) AS t, AVG(price) AS p, COUNT(*) AS n FROM readings GROUP BY h HAVING COUNT(*) >= 100 ORDER BY h;
SELECT zone, AVG(temperature) AS t, 9.0 / 5 * AVG(temperature) + 32 AS f FROM readings GROUP BY zone;
SELECT month, SUM(kwh) AS kwh, 100 * (SUM(kwh) / LAG(SUM(kwh)) OVER (ORDER BY month) - 1) AS growth FROM readings GROUP BY month ORDER BY month;
SELECT CASE WHEN temperature < 0 THEN 'frost' WHEN temperature < 15 THEN 'cool' ELSE 'warm' END AS weather, zone, AVG(price) AS p FROM readings GROUP BY ALL ORDER BY ALL;
SELECT zone, CASE WHEN GROUPING(kind) = 1 THEN 'all kinds' ELSE kind END AS kind, SUM(price) AS p FROM readings GROUP BY zone, ROLLUP (kind);
SELECT quarter, COUNT(*) AS n FROM (SELECT (month - 1) // 3 + 1 AS quarter FROM readings) q GROUP BY quarter ORDER BY quarter;
