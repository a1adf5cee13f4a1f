-- Further statements over the flights, written before it was tried which of them are compiled:
-- by an engineer, by a tool for reports, by a statistician. DuckDB is asked what "duckdb:" says.

-- data engineer
WITH base AS (SELECT *, dep_delay >= 15 AS is_late FROM flights WHERE dep_delay IS NOT NULL) SELECT carrier, COUNT(*) AS flights, COUNT(*) FILTER (WHERE is_late) AS late_flights FROM base GROUP BY carrier ORDER BY late_flights DESC;
SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY GROUPING SETS ((origin, carrier), (origin), ());
SELECT origin, month, COUNT(*) AS n FROM flights GROUP BY ROLLUP (origin, month) ORDER BY origin, month;
SELECT origin, month, COUNT(*) AS n FROM flights GROUP BY CUBE (origin, month);
SELECT carrier, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS rnk FROM flights GROUP BY carrier;
SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY origin, carrier QUALIFY ROW_NUMBER() OVER (PARTITION BY origin ORDER BY COUNT(*) DESC) <= 3;
SELECT month, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY month) AS diff FROM flights GROUP BY month ORDER BY month;
SELECT DATE_TRUNC('month', date) AS m, COUNT(*) AS n FROM flights GROUP BY 1 ORDER BY 1;
SELECT DATE_TRUNC('week', date) AS wk, COUNT(*) FILTER (WHERE dep_delay > 60) AS very_late FROM flights GROUP BY wk ORDER BY wk;
SELECT EXTRACT(dow FROM date) AS dow, AVG(dep_delay) AS avg_delay FROM flights GROUP BY 1 ORDER BY 1;
-- duckdb: SELECT strftime(date, '%Y-%m') AS ym, COUNT(*) FROM flights GROUP BY 1;
SELECT to_char(date, 'YYYY-MM') AS ym, COUNT(*) FROM flights GROUP BY 1;
SELECT strftime(date, '%Y-%m') AS ym, SUM(CASE WHEN arr_delay > 15 THEN 1 ELSE 0 END)::DOUBLE / COUNT(arr_delay) AS late_rate FROM flights GROUP BY ym ORDER BY ym;
SELECT date_part('quarter', date) AS q, origin, COUNT(*) AS n FROM flights GROUP BY q, origin ORDER BY q, origin;
SELECT COUNT(*) FROM flights WHERE date >= '2013-07-01' AND date < '2013-08-01';
SELECT COUNT(*) FROM flights WHERE date BETWEEN DATE '2013-12-20' AND DATE '2013-12-31' AND carrier IN ('DL', 'UA', 'B6');
SELECT COUNT(*) FROM flights WHERE EXTRACT(isodow FROM date) IN (6, 7);
WITH daily AS (SELECT date, COUNT(*) AS n FROM flights GROUP BY date) SELECT AVG(n) AS flights_per_day FROM daily;
WITH daily AS (SELECT date, COUNT(*) AS n FROM flights GROUP BY date) SELECT date, n, AVG(n) OVER (ORDER BY date ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS ma7 FROM daily ORDER BY date;
WITH by_carrier AS (SELECT carrier, COUNT(*) AS n, COUNT(*) FILTER (WHERE dep_delay IS NULL) AS cancelled FROM flights GROUP BY carrier) SELECT carrier, n, cancelled, 1.0 * cancelled / n AS cancel_rate FROM by_carrier ORDER BY cancel_rate DESC;
WITH t AS (SELECT origin, dest, COUNT(*) AS n FROM flights GROUP BY origin, dest) SELECT origin, SUM(n) AS total FROM t GROUP BY origin;
SELECT carrier, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM flights) AS pct FROM flights GROUP BY carrier ORDER BY pct DESC;
SELECT f.origin, a.name, COUNT(*) AS n FROM flights AS f INNER JOIN airlines AS a ON a.carrier = f.carrier WHERE a.name LIKE '%Air%' GROUP BY f.origin, a.name ORDER BY n DESC LIMIT 10;
SELECT COUNT(*) FROM flights WHERE carrier ~ '^[A-D]';
SELECT CONCAT(origin, '->', dest) AS route, COUNT(*) AS n FROM flights WHERE origin = 'JFK' GROUP BY route ORDER BY n DESC LIMIT 5;
SELECT substring(dest, 1, 1) AS initial, COUNT(*) FROM flights GROUP BY 1 ORDER BY 1;
-- refused: BOOL_OR() is not supported
SELECT origin, bool_or(dep_delay > 600) FROM flights GROUP BY origin;
SELECT month, COUNT(*) FILTER (WHERE origin = 'EWR') AS ewr, COUNT(*) FILTER (WHERE origin = 'JFK') AS jfk, COUNT(*) FILTER (WHERE origin = 'LGA') AS lga, COUNT(*) AS total FROM flights GROUP BY month ORDER BY month;
SELECT 'JFK' AS airport, COUNT(*) AS n FROM flights WHERE origin = 'JFK' UNION ALL SELECT 'LGA', COUNT(*) FROM flights WHERE origin = 'LGA' ORDER BY n DESC;
SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING COUNT(*) > 10000 OR COUNT(*) FILTER (WHERE dep_delay > 60) > 1000;
SELECT carrier, AVG(dep_delay) AS d FROM flights GROUP BY carrier HAVING AVG(dep_delay) > 10 AND NOT COUNT(*) < 1000 ORDER BY d DESC;
SELECT carrier, AVG(dep_delay) AS d FROM flights GROUP BY carrier HAVING COUNT(*) BETWEEN 500 AND 20000;
SELECT COUNT(*) FROM flights WHERE dep_delay > 0 AND arr_delay < 0;
-- refused: arr_delay < dep_delay has 1,990,021 combinations of declared values, and at most 131,072 are evaluated
SELECT COUNT(*) AS made_up_time FROM flights WHERE arr_delay < dep_delay;
SELECT AVG(arr_delay - dep_delay) AS gained FROM flights;
SELECT carrier, AVG(arr_delay) - AVG(dep_delay) AS gained FROM flights GROUP BY carrier;
-- refused: GREATEST(dep_delay, arr_delay) > 60 has 1,990,021 combinations of declared values, and at most 131,072 are evaluated
SELECT COUNT(*) FROM flights WHERE GREATEST(dep_delay, arr_delay) > 60;
SELECT COUNT(*) FROM (SELECT * FROM flights WHERE origin IN ('JFK', 'LGA')) q WHERE q.month = 7;
SELECT month, origin, SUM(COUNT(*)) OVER (PARTITION BY origin ORDER BY month ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running FROM flights GROUP BY month, origin;
SELECT carrier, n, ROUND(100.0 * n / SUM(n) OVER (), 2) AS share FROM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) t ORDER BY share DESC;
SELECT COUNT(*) FROM flights WHERE carrier = ANY (ARRAY['AA', 'UA']);
SELECT COUNT(*) FROM flights WHERE EXISTS (SELECT 1 FROM airlines a WHERE a.carrier = flights.carrier AND a.name LIKE 'United%');
SELECT nvl(CAST(dep_delay > 15 AS INT), 0) AS late, count(1) AS cnt FROM flights GROUP BY 1;
-- duckdb: SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin;
SELECT `origin`, COUNT(*) AS `n` FROM `flights` GROUP BY `origin`;
SELECT count_if(dep_delay > 15) / count(*) AS share FROM flights;
-- duckdb: SELECT carrier, quantile_cont(dep_delay, 0.9) AS p90 FROM flights GROUP BY carrier;
SELECT carrier, percentile_approx(dep_delay, 0.9) AS p90 FROM flights GROUP BY carrier;
-- duckdb: SELECT strftime(date, '%Y-%m') AS ym, count(*) FROM flights GROUP BY ym;
SELECT date_format(date, 'yyyy-MM') AS ym, count(*) FROM flights GROUP BY ym;
-- BI
SELECT "flights"."carrier" AS "Carrier", COUNT(*) AS "Number of flights" FROM "flights" GROUP BY "flights"."carrier" ORDER BY "Number of flights" DESC;
SELECT "t0"."origin" AS "origin", SUM(CASE WHEN "t0"."dep_delay" > 15 THEN 1 ELSE 0 END) AS "Late", COUNT(1) AS "All" FROM "flights" AS "t0" GROUP BY "t0"."origin";
SELECT "origin", "month", COUNT(*) AS "cnt" FROM (SELECT "origin", "month", "carrier" FROM "flights" WHERE "carrier" <> 'MQ') AS "x" GROUP BY "origin", "month" LIMIT 1000;
SELECT CASE WHEN "hour" BETWEEN 5 AND 11 THEN 'Morning' WHEN "hour" BETWEEN 12 AND 17 THEN 'Afternoon' WHEN "hour" BETWEEN 18 AND 23 THEN 'Evening' ELSE 'Night' END AS "Part of day", COUNT(*) AS "Flights", AVG("dep_delay") AS "Avg delay" FROM "flights" GROUP BY 1;
SELECT COALESCE(CASE WHEN dep_delay > 15 THEN 'Late' WHEN dep_delay <= 15 THEN 'On time' END, 'Cancelled') AS "Status", COUNT(*) AS "Count" FROM flights GROUP BY 1 ORDER BY 2 DESC;
SELECT origin AS "Airport", COUNT(*) AS "Flights", SUM(COALESCE(dep_delay, 0)) AS "Total delay", SUM(COALESCE(dep_delay, 0)) / COUNT(*) AS "Delay per flight" FROM flights GROUP BY origin;
SELECT carrier AS "Carrier", SUM(CASE WHEN month = 1 THEN 1 ELSE 0 END) AS "Jan", SUM(CASE WHEN month = 2 THEN 1 ELSE 0 END) AS "Feb", SUM(CASE WHEN month = 3 THEN 1 ELSE 0 END) AS "Mar" FROM flights GROUP BY carrier;
SELECT * FROM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) AS t WHERE n > 1000 ORDER BY n DESC LIMIT 5;
-- duckdb: SELECT carrier, COUNT(*) FROM flights GROUP BY carrier LIMIT 10;
SELECT TOP 10 carrier, COUNT(*) FROM flights GROUP BY carrier;
SELECT COUNT(*) "Anzahl" FROM flights WHERE (("flights"."origin" = 'JFK') AND ("flights"."month" >= 6));
SELECT SUM(CASE WHEN origin = 'JFK' THEN 1 ELSE 0 END) / SUM(1.0) AS "JFK share" FROM flights;
SELECT CASE origin WHEN 'JFK' THEN 'Kennedy' WHEN 'LGA' THEN 'LaGuardia' ELSE 'Newark' END AS "Airport name", COUNT(*) FROM flights GROUP BY CASE origin WHEN 'JFK' THEN 'Kennedy' WHEN 'LGA' THEN 'LaGuardia' ELSE 'Newark' END;
-- refused: is not supported; it is not a sum over rows
SELECT COUNT(DISTINCT carrier) FROM flights;
-- refused: DISTINCT is not supported
SELECT DISTINCT origin FROM flights;
-- refused: a single row decides it
SELECT MIN(dep_delay), MAX(dep_delay) FROM flights;
SELECT SUM(distance) / 1000 AS "Thousand miles" FROM flights WHERE origin = 'JFK';
SELECT origin, SUM(distance) AS miles, SUM(distance) / COUNT(*) AS avg_miles FROM flights GROUP BY origin;
SELECT YEAR(date) AS y, MONTH(date) AS m, COUNT(*) AS n FROM flights GROUP BY YEAR(date), MONTH(date) ORDER BY y, m;
SELECT DAYNAME(date) AS "Day", COUNT(*) AS "Flights" FROM flights GROUP BY DAYNAME(date);
SELECT IIF(dep_delay > 15, 'late', 'ok') AS s, COUNT(*) FROM flights GROUP BY 1;
SELECT origin, IFNULL(SUM(dep_delay), 0) AS total FROM flights GROUP BY origin;
-- statistician
SELECT AVG(dep_delay), STDDEV(dep_delay), COUNT(dep_delay), STDDEV(dep_delay) / SQRT(COUNT(dep_delay)) AS se FROM flights;
SELECT origin, AVG(dep_delay) AS m, VAR_SAMP(dep_delay) AS v FROM flights GROUP BY origin;
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY dep_delay) AS q1, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY dep_delay) AS q2, PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY dep_delay) AS q3 FROM flights;
SELECT PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY dep_delay) - PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY dep_delay) AS iqr FROM flights;
-- refused: a quantile without one constant level is not supported
SELECT quantile_cont(arr_delay, [0.1, 0.5, 0.9]) FROM flights;
SELECT approx_quantile(dep_delay, 0.5) FROM flights;
SELECT AVG(dep_delay) FILTER (WHERE origin = 'JFK') - AVG(dep_delay) FILTER (WHERE origin = 'LGA') AS diff FROM flights;
SELECT AVG(CASE WHEN origin = 'JFK' THEN dep_delay END) / AVG(CASE WHEN origin = 'LGA' THEN dep_delay END) AS ratio FROM flights;
SELECT CORR(month, hour) FROM flights;
SELECT COVAR_SAMP(month, hour), COVAR_POP(month, hour) FROM flights;
SELECT REGR_SLOPE(hour, month), REGR_INTERCEPT(hour, month) FROM flights;
-- duckdb: SELECT dep_delay // 10 + 1 AS b, COUNT(*) FROM flights WHERE dep_delay BETWEEN 0 AND 119 GROUP BY b ORDER BY b;
SELECT WIDTH_BUCKET(dep_delay, 0, 120, 12) AS b, COUNT(*) FROM flights WHERE dep_delay BETWEEN 0 AND 119 GROUP BY b ORDER BY b;
SELECT FLOOR(dep_delay / 10.0) * 10 AS bin, COUNT(*) AS freq FROM flights WHERE dep_delay >= 0 AND dep_delay < 200 GROUP BY bin ORDER BY bin;
SELECT FLOOR(distance / 1000) AS k, COUNT(*) FROM flights WHERE distance < 3000 GROUP BY k;
-- refused: LOG(1 + ABS(dep_delay)) without an aggregate is not supported
SELECT LOG(1 + ABS(dep_delay)) FROM flights;
SELECT AVG(LN(1 + GREATEST(dep_delay, 0))) AS mean_log FROM flights;
SELECT SUM(dep_delay * dep_delay) AS ss FROM flights;
SELECT AVG(POWER(dep_delay - 12, 2)) AS msd FROM flights WHERE dep_delay IS NOT NULL;
-- refused: SKEWNESS() is not supported
SELECT SKEWNESS(hour), KURTOSIS(hour) FROM flights;
SELECT MODE(carrier) FROM flights;
SELECT origin, COUNT(*) FILTER (WHERE dep_delay > 15) * 1.0 / COUNT(dep_delay) AS p, SQRT((COUNT(*) FILTER (WHERE dep_delay > 15) * 1.0 / COUNT(dep_delay)) * (1 - COUNT(*) FILTER (WHERE dep_delay > 15) * 1.0 / COUNT(dep_delay)) / COUNT(dep_delay)) AS se FROM flights GROUP BY origin;
SELECT LN((COUNT(*) FILTER (WHERE dep_delay > 15 AND origin = 'EWR') * 1.0 * COUNT(*) FILTER (WHERE dep_delay <= 15 AND origin = 'JFK')) / (COUNT(*) FILTER (WHERE dep_delay <= 15 AND origin = 'EWR') * COUNT(*) FILTER (WHERE dep_delay > 15 AND origin = 'JFK'))) AS log_or FROM flights;
SELECT hour, AVG(dep_delay) AS mean_delay, MEDIAN(dep_delay) AS med_delay FROM flights WHERE hour BETWEEN 5 AND 22 GROUP BY hour ORDER BY hour;
