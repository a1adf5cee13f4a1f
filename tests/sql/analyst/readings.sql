-- Statements over readings of electricity meters, in the habits of several databases and tools.

SELECT zone, MAX(total) AS most FROM (SELECT zone, month, SUM(temperature) AS total FROM readings GROUP BY zone, month) GROUP BY zone;
SELECT MAX(mean) AS most FROM (SELECT zone, AVG(temperature) AS mean FROM readings GROUP BY zone);
SELECT MAX(n) - MIN(n) AS gap FROM (SELECT zone, COUNT(*) AS n FROM readings GROUP BY zone);
SELECT month, n, SUM(n) OVER (ORDER BY month) AS running FROM (SELECT month, COUNT(*) AS n FROM readings GROUP BY month);
SELECT month, n FROM (SELECT month, COUNT(*) AS n, LAG(COUNT(*)) OVER (ORDER BY month) AS p FROM readings GROUP BY month) WHERE p > 0;
SELECT month, n - p AS growth FROM (SELECT month, COUNT(*) AS n, LAG(COUNT(*)) OVER (ORDER BY month) AS p FROM readings GROUP BY month) WHERE month > 2 ORDER BY month;
SELECT month, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*), 1) OVER (ORDER BY month) AS d FROM readings GROUP BY month HAVING COUNT(*) > 10;
WITH z AS (SELECT zone, month, COUNT(*) AS n FROM readings GROUP BY 1, 2), y AS (SELECT zone, month, n, LAG(n) OVER (PARTITION BY zone ORDER BY month) AS p FROM z) SELECT zone, month, n, p, 100.0 * (n - p) / p AS pct FROM y WHERE month = 6;
WITH z AS (SELECT zone, COUNT(*) AS n FROM readings GROUP BY 1) SELECT zone, n, RANK() OVER (ORDER BY n DESC) AS r FROM z ORDER BY r;
WITH z AS (SELECT zone, COUNT(*) AS n FROM readings GROUP BY 1), t AS (SELECT zone FROM z ORDER BY n DESC LIMIT 2) SELECT z.zone, z.n FROM z JOIN t USING (zone);
SELECT zone, COUNT(*) AS n FROM readings WHERE zone IN (SELECT zone FROM readings GROUP BY zone ORDER BY COUNT(*) DESC LIMIT 2) GROUP BY zone;
SELECT zone, COUNT(*) AS n, CASE WHEN COUNT(*) FILTER (WHERE kind = 'solar') > 100 THEN 1 ELSE 0 END AS sunny FROM readings GROUP BY zone;
SELECT zone, CASE WHEN COUNT(*) = 0 THEN 0 ELSE SUM(temperature) / COUNT(*) END AS mean FROM readings GROUP BY zone;
SELECT zone, SUM(temperature) / NULLIF(COUNT(*), 0) AS mean FROM readings GROUP BY zone;
SELECT zone, CASE WHEN SUM(CASE WHEN kind = 'solar' THEN 1 ELSE 0 END) = 0 THEN NULL ELSE 1.0 * SUM(CASE WHEN kind = 'wind' THEN 1 ELSE 0 END) / SUM(CASE WHEN kind = 'solar' THEN 1 ELSE 0 END) END AS ratio FROM readings GROUP BY zone;
SELECT kind, COUNT(*) AS n FROM readings GROUP BY kind ORDER BY CASE WHEN kind = 'other' THEN 1 ELSE 0 END, kind;
SELECT kind, COUNT(*) AS n FROM readings GROUP BY kind ORDER BY kind = 'other', n DESC;
SELECT kind, COUNT(*) AS n FROM readings GROUP BY kind ORDER BY COUNT(*) FILTER (WHERE zone = 'north') DESC;
SELECT zone, kind, COUNT(*) AS n FROM readings GROUP BY ALL ORDER BY ALL;
SELECT zone, kind, COUNT(*) AS n, LAST_VALUE(kind) OVER (PARTITION BY zone ORDER BY COUNT(*) ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS top FROM readings GROUP BY zone, kind;
SELECT zone, kind, n FROM (SELECT zone, kind, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY zone ORDER BY COUNT(*) DESC) AS r FROM readings GROUP BY zone, kind) WHERE r = 1;
SELECT DISTINCT ON (zone) zone, kind, COUNT(*) AS n FROM readings GROUP BY zone, kind ORDER BY zone, n DESC;
WITH a AS (SELECT AVG(temperature) AS mean FROM readings) SELECT zone, AVG(temperature) - (SELECT mean FROM a) AS above FROM readings GROUP BY zone;
WITH a AS (SELECT AVG(temperature) AS mean FROM readings) SELECT zone, AVG(temperature) - a.mean AS above FROM readings, a GROUP BY zone, a.mean;
WITH a AS (SELECT COUNT(*) AS total FROM readings) SELECT zone, 100.0 * COUNT(*) / MAX(a.total) AS pct FROM readings CROSS JOIN a GROUP BY zone;
SELECT zone, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM readings) AS pct FROM readings GROUP BY zone;
SELECT zone, COUNT(*) AS n, AVG(COUNT(*)) OVER () AS mean FROM readings GROUP BY zone;
SELECT zone, COUNT(*) AS n, MAX(COUNT(*)) OVER () AS most FROM readings GROUP BY zone;
SELECT zone, COUNT(*) AS n, MIN(COUNT(*)) OVER () AS least FROM readings GROUP BY zone;
SELECT month, COUNT(*) AS n, AVG(COUNT(*)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS ma FROM readings GROUP BY month ORDER BY month;
SELECT AVG(n) AS mean FROM (SELECT zone, COUNT(*) AS n FROM readings GROUP BY zone);
SELECT COUNT(*) AS zones FROM (SELECT zone, COUNT(*) AS n FROM readings GROUP BY zone HAVING COUNT(*) > 100);
SELECT z.name, SUM(temperature) / MAX(z.households) AS per_household FROM readings r JOIN zones z ON r.zone = z.zone GROUP BY z.name;
-- refused: SUM(DISTINCT …) is not supported; it is not a sum over rows; GROUP BY the column, and count the groups that are not near 0
SELECT z.name, COUNT(*) / SUM(DISTINCT z.households) AS per_household FROM readings r JOIN zones z ON r.zone = z.zone GROUP BY z.name;
SELECT z.name, COUNT(*) / z.households AS per_household FROM readings r JOIN zones z ON r.zone = z.zone GROUP BY z.name, z.households ORDER BY 2 DESC;
SELECT r.zone, COUNT(*) / z.households AS per_household FROM readings r JOIN zones z ON r.zone = z.zone GROUP BY r.zone, z.households;
SELECT z.area, COUNT(*) AS n FROM readings r LEFT JOIN zones z ON r.zone = z.zone AND z.households > 300 GROUP BY z.area;
SELECT z.area, COUNT(*) AS n FROM zones z INNER JOIN readings r USING (zone) WHERE z.households > 300 GROUP BY z.area;
SELECT z.area, AVG(z.households) AS households, COUNT(*) AS n FROM readings JOIN zones z USING (zone) GROUP BY z.area;
SELECT CASE WHEN z.households > 300 THEN 'large' ELSE 'small' END AS size, COUNT(*) AS n FROM readings JOIN zones z USING (zone) GROUP BY 1;
SELECT SUM(z.households) AS households FROM readings JOIN zones z USING (zone) WHERE z.area = 'land';
SELECT COALESCE(zone, 'Total') AS zone, COALESCE(kind, 'Total') AS kind, COUNT(*) AS n, AVG(temperature) AS mean FROM readings GROUP BY ROLLUP (zone, kind);
SELECT COALESCE(CAST(month AS VARCHAR), 'Total') AS month, COUNT(*) AS n FROM readings GROUP BY ROLLUP (month);
-- duckdb: SELECT COALESCE(zone, 'Total') AS zone, COUNT(*) AS n FROM readings GROUP BY ROLLUP (zone) ORDER BY GROUPING(zone), zone;
SELECT NVL(zone, 'Total') AS zone, COUNT(*) AS n FROM readings GROUP BY ROLLUP (zone) ORDER BY GROUPING(zone), zone;
-- duckdb: SELECT zone, GROUPING(zone) > 0 AS is_total, COUNT(*) AS n FROM readings GROUP BY ROLLUP (zone);
SELECT zone, GROUPING(zone) = 1 AS is_total, COUNT(*) AS n FROM readings GROUP BY ROLLUP (zone);
-- duckdb: SELECT zone, GROUPING(zone, kind) AS level, COUNT(*) AS n FROM readings GROUP BY ROLLUP (zone, kind);
SELECT zone, GROUPING_ID(zone, kind) AS level, COUNT(*) AS n FROM readings GROUP BY ROLLUP (zone, kind);
-- duckdb: SELECT zone, kind, COUNT(*) AS n FROM readings GROUP BY zone, kind;
SELECT zone, kind, COUNT(*) AS n FROM readings GROUP BY ROLLUP (zone, kind) HAVING GROUPING(kind) = 0;
SELECT 'Total' AS zone, COUNT(*) AS n FROM readings UNION ALL SELECT zone, COUNT(*) AS n FROM readings GROUP BY zone;
SELECT zone, COUNT(*) AS n FROM readings GROUP BY zone UNION ALL SELECT 'Total', COUNT(*) FROM readings ORDER BY n DESC;
SELECT SUM(n) AS n FROM (SELECT COUNT(*) AS n FROM readings WHERE kind = 'solar' UNION ALL SELECT COUNT(*) AS n FROM readings WHERE kind = 'wind');
SELECT HOUR(read_at) AS h, AVG(temperature) AS mean FROM readings GROUP BY h;
SELECT DATE_TRUNC('day', read_at) AS d, COUNT(*) AS n FROM readings GROUP BY d ORDER BY d;
SELECT TIME_BUCKET(INTERVAL '6 hours', read_at) AS b, COUNT(*) AS n FROM readings GROUP BY b ORDER BY b;
SELECT STRFTIME(read_at, '%H:00') AS h, COUNT(*) AS n FROM readings GROUP BY h;
-- dialect: duckdb
SELECT DAYNAME(read_at) AS d, COUNT(*) AS n FROM readings GROUP BY d, ISODOW(read_at) ORDER BY ISODOW(read_at);
-- dialect: duckdb
SELECT ISODOW(read_at) >= 6 AS weekend, HOUR(read_at) // 6 AS quarter, COUNT(*) AS n FROM readings GROUP BY 1, 2;
SELECT COUNT(*) FROM readings WHERE read_at >= '2024-03-01 06:00' AND read_at < '2024-03-02';
SELECT COUNT(*) FROM readings WHERE CAST(read_at AS DATE) = DATE '2024-03-02';
SELECT COUNT(*) FROM readings WHERE EXTRACT(HOUR FROM read_at) IN (6, 7, 8) AND kind = 'solar';
SELECT DATE_DIFF('hour', TIMESTAMP '2024-03-01 00:00:00', read_at) // 24 AS day, COUNT(*) AS n FROM readings GROUP BY 1;
SELECT zone, SUM(kwh) AS kwh FROM readings GROUP BY zone;
SELECT zone, AVG(kwh) AS mean, COUNT(*) FILTER (WHERE kwh >= 10) AS large FROM readings GROUP BY zone;
SELECT zone, MEDIAN(kwh) AS middle, AVG(kwh) AS mean FROM readings GROUP BY zone;
SELECT CASE WHEN kwh < 5 THEN 'low' WHEN kwh < 20 THEN 'middle' ELSE 'high' END AS use, COUNT(*) AS n FROM readings GROUP BY 1;
SELECT zone, SUM(kwh * price) AS cost FROM readings GROUP BY zone;
SELECT SUM(price * temperature) / SUM(price) AS mean FROM readings;
SELECT zone, SUM(kwh * price) / SUM(kwh) AS mean_price FROM readings GROUP BY zone;
-- dialect: tsql
SELECT TOP 3 zone, COUNT(*) AS n FROM readings GROUP BY zone ORDER BY COUNT(*) DESC;
-- dialect: spark
SELECT zone, percentile_approx(temperature, 0.5) AS middle FROM readings GROUP BY zone;
-- dialect: spark
SELECT hour(read_at) AS h, count(*) AS n FROM readings GROUP BY hour(read_at);
