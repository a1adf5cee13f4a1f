-- Statements over the flights that were written while the compiler grew, and are not counted.

SELECT carrier, COUNT(*) AS n, COUNT(*) * 1.0 / t.total AS share FROM flights, (SELECT COUNT(*) AS total FROM flights) t GROUP BY carrier, t.total;
WITH tot AS (SELECT COUNT(*) AS total, AVG(dep_delay) AS m FROM flights WHERE month < 7) SELECT origin, 100.0 * COUNT(*) / total AS pct FROM flights CROSS JOIN tot WHERE month < 7 GROUP BY origin, total ORDER BY pct DESC;
WITH a AS (SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin), b AS (SELECT origin, COUNT(*) AS late FROM flights WHERE dep_delay > 15 GROUP BY origin) SELECT a.origin, a.n, b.late, b.late * 1.0 / a.n AS rate FROM a JOIN b ON a.origin = b.origin ORDER BY rate DESC;
WITH a AS (SELECT origin, month, AVG(dep_delay) AS n FROM flights GROUP BY origin, month), b AS (SELECT origin, month, COUNT(*) AS late FROM flights WHERE dep_delay > 15 GROUP BY 1, 2) SELECT origin, month, n, late FROM a LEFT JOIN b USING (origin, month);
SELECT origin, AVG(dep_delay) - (SELECT AVG(dep_delay) FROM flights) AS above FROM flights GROUP BY origin;
SELECT origin, SUM(n) AS s, SUM(late) * 1.0 / SUM(n) AS r FROM (SELECT origin, dest, COUNT(*) AS n, COUNT(*) FILTER (WHERE dep_delay > 15) AS late FROM flights WHERE month = 1 GROUP BY origin, dest) q WHERE dest <> 'LAX' GROUP BY origin ORDER BY s;
SELECT CASE WHEN COUNT(dep_delay) = 0 THEN NULL ELSE SUM(dep_delay) * 1.0 / COUNT(dep_delay) END AS m FROM flights;
SELECT origin, CASE WHEN COUNT(*) > 0 THEN COUNT(*) FILTER (WHERE dep_delay > 15) * 1.0 / COUNT(*) ELSE 0 END AS m FROM flights GROUP BY origin;
-- refused: a subquery in a condition is not supported
SELECT COUNT(*) FROM flights WHERE dep_delay > (SELECT AVG(dep_delay) FROM flights);
SELECT EXTRACT(quarter FROM date) AS q, origin, COUNT(*) AS n FROM flights GROUP BY ROLLUP (q, origin);
SELECT EXTRACT(quarter FROM date) AS q, origin, COUNT(*) AS n FROM flights GROUP BY GROUPING SETS ((1, 2), (1), (2), ());
SELECT COALESCE(origin, 'Total') AS origin, COUNT(*) FROM flights GROUP BY ROLLUP (origin);
SELECT origin, COUNT(*) AS n FROM flights WHERE dest = 'LAX' GROUP BY origin UNION ALL SELECT 'all' AS origin, COUNT(*) AS n FROM flights WHERE dest = 'LAX';
SELECT * FROM (SELECT origin, carrier, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY origin ORDER BY COUNT(*) DESC) AS rn FROM flights GROUP BY origin, carrier) t WHERE rn <= 3;
WITH r AS (SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY origin, carrier) SELECT origin, carrier, n, RANK() OVER (PARTITION BY origin ORDER BY n DESC) AS rk FROM r QUALIFY rk = 1;
SELECT origin, dest, COUNT(*) AS n FROM flights GROUP BY 1, 2 HAVING COUNT(*) > 100 AND origin <> 'JFK' ORDER BY n DESC;
SELECT VAR_POP(arr_delay - dep_delay), AVG(dep_delay + arr_delay) FROM flights WHERE carrier = 'UA';
SELECT AVG(month * hour), SUM(month * hour), STDDEV(month * hour) FROM flights;
SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin ORDER BY COUNT(*) FILTER (WHERE dep_delay > 15) * 1.0 / COUNT(*) DESC;
SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM flights GROUP BY origin HAVING COUNT(*) > 5);
-- refused: COUNT(*) over answers is not supported
SELECT COUNT(*) FROM (SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin);
SELECT origin, n * 2 AS twice FROM (SELECT origin, SUM(c) AS n FROM (SELECT origin, month, COUNT(*) AS c FROM flights GROUP BY 1, 2) GROUP BY origin) ORDER BY twice;
SELECT (SELECT AVG(dep_delay) FROM flights WHERE origin = 'JFK') - (SELECT AVG(dep_delay) FROM flights WHERE origin = 'LGA') AS diff;
-- refused: table 'airlines' is unknown
SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM airlines) FROM flights;
SELECT carrier, COUNT(*) AS n FROM flights f GROUP BY carrier HAVING COUNT(*) > (SELECT COUNT(*) FROM flights) / 20;
SELECT origin, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY origin HAVING COUNT(*) > 10;
SELECT * FROM (SELECT carrier, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY carrier) t WHERE carrier <> 'UA' AND n > 100;
SELECT origin, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY origin HAVING origin <> 'JFK';
SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING NOT (COUNT(*) BETWEEN 100 AND 5000 OR AVG(dep_delay) < 5) ORDER BY n;
SELECT * FROM (SELECT carrier, origin, COUNT(*) AS n FROM flights GROUP BY carrier, origin) t WHERE carrier IN ('UA', 'AA') AND n > 100 ORDER BY n DESC LIMIT 3;
SELECT LEFT(carrier, 1) AS c, COUNT(*) AS n FROM flights GROUP BY c HAVING c < 'F' AND COUNT(*) > 50;
SELECT AVG(CASE WHEN month > 6 THEN arr_delay - dep_delay END) AS g, COUNT(arr_delay - dep_delay) AS n FROM flights;
SELECT origin, SUM(CASE WHEN dep_delay > 0 THEN dep_delay * month ELSE 0 END) AS s FROM flights GROUP BY origin;
SELECT SUM((arr_delay - dep_delay) * month) AS s, SUM(-(arr_delay - dep_delay)) AS t FROM flights;
SELECT EXTRACT(quarter FROM date) AS q, month, COUNT(*) AS n, AVG(dep_delay) AS d FROM flights GROUP BY ROLLUP (q, month) ORDER BY q, n DESC;
SELECT hour < 12 AS am, origin, LEFT(carrier, 1) AS c, COUNT(*) AS n FROM flights GROUP BY origin, CUBE (am, c);
SELECT hour < 12 AS am, origin, COUNT(*) AS n FROM flights GROUP BY GROUPING SETS ((am), (origin), (am, origin));
WITH m AS (SELECT DATE_TRUNC('month', date) AS mth, COUNT(*) AS n FROM flights GROUP BY 1) SELECT mth, n, SUM(n) OVER (ORDER BY mth) AS running FROM m ORDER BY mth;
SELECT CASE WHEN hour < 12 THEN 'am' ELSE 'pm' END AS half, LEFT(dest, 1) AS l, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY LEFT(dest, 1)) AS s FROM flights GROUP BY 1, 2;
SELECT date, SUM(COUNT(*)) OVER (ORDER BY date RANGE BETWEEN INTERVAL '6 days' PRECEDING AND CURRENT ROW) AS week FROM flights GROUP BY date;
SELECT hour, SUM(COUNT(*)) OVER (ORDER BY hour RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS around FROM flights WHERE origin = 'LGA' GROUP BY hour;
SELECT month, SUM(COUNT(*)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS q FROM flights GROUP BY month;
SELECT CASE month WHEN 1 THEN 'Jan' WHEN 2 THEN 'Feb' ELSE 'later' END AS m, COUNT(*) AS n FROM flights GROUP BY month;
SELECT CONCAT(origin, '/', carrier) AS pair, COUNT(*) AS n FROM flights GROUP BY origin, carrier ORDER BY n DESC LIMIT 5;
SELECT origin, CASE WHEN origin = 'EWR' THEN 'NJ' ELSE 'NY' END AS state, COUNT(*) AS n FROM flights GROUP BY origin ORDER BY state, n DESC;
SELECT 'Q' || ((month - 1) // 3 + 1) AS q, COUNT(*) AS n FROM flights GROUP BY (month - 1) // 3;
SELECT a.name, COUNT(*) AS n FROM flights f, airlines a WHERE a.carrier = f.carrier AND f.month = 2 AND a.name LIKE '%Air%' GROUP BY a.name;
SELECT name, COUNT(*) AS n FROM airlines JOIN flights USING (carrier) WHERE origin = 'JFK' GROUP BY name;
SELECT a.name, COUNT(*) AS n FROM airlines a RIGHT JOIN flights f ON a.carrier = f.carrier GROUP BY a.name;
-- duckdb: SELECT a.name, COUNT(f.carrier) FROM airlines a LEFT JOIN flights f ON a.carrier = f.carrier GROUP BY a.name;
SELECT a.name, COUNT(*) FROM airlines a LEFT JOIN flights f ON a.carrier = f.carrier GROUP BY a.name;
SELECT COUNT(*) FROM flights NATURAL JOIN airlines;
SELECT COUNT(*) FROM flights f WHERE EXISTS (SELECT 1 FROM airlines a WHERE a.carrier = f.carrier AND a.name LIKE 'U%');
SELECT month, SUM(CASE WHEN origin = 'JFK' THEN n END) AS jfk, SUM(IF(origin = 'LGA', n, 0)) AS lga, SUM(n) AS n FROM (SELECT month, origin, COUNT(*) AS n FROM flights GROUP BY 1, 2) GROUP BY month ORDER BY month;
