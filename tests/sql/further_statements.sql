-- Statements of the same kinds as those on the reference page, run by the same tests.
SELECT COUNT(1), COUNT(*) AS n, COUNT(day) FROM main.flights;
SELECT SUM(1) FROM flights;
SELECT SUM(CASE WHEN origin = 'JFK' THEN hour END) FROM flights;
SELECT SUM(IF(late, 1, 0)) FROM flights;
SELECT SUM(late::INT) FROM flights;
SELECT COUNT(*)::DOUBLE FROM flights;
SELECT COUNT(NULLIF(carrier, 'AA')) FROM flights;
SELECT COALESCE(SUM(hour), 0) FROM flights WHERE month = 2;
SELECT AVG(late::INT) FROM flights;
SELECT ROUND(100.0 * SUM(CASE WHEN late THEN 1 ELSE 0 END) / COUNT(*), 1) AS pct FROM flights;
SELECT SUM(hour) / COUNT(*) AS per_flight FROM flights WHERE month <= 6;
SELECT COUNT(*) FILTER (WHERE late)::DOUBLE / NULLIF(COUNT(late), 0) FROM flights;
SELECT 1 - AVG(late::INT) AS on_time FROM flights;
SELECT origin, STDDEV(hour) / AVG(hour) AS cv FROM flights GROUP BY origin;
SELECT EXP(AVG(LN(month))) AS geometric_mean, ABS(AVG(hour) - 12), POWER(AVG(hour), 2) FROM flights;
SELECT AVG(hour - month), STDDEV(hour * month) FROM flights;
SELECT CAST(100.0 * COUNT_IF(late) / COUNT(*) AS DECIMAL(6, 1)) AS pct FROM flights;
SELECT CASE WHEN COUNT(late) = 0 THEN NULL ELSE 1.0 * COUNT_IF(late) / COUNT(late) END AS rate FROM flights;
SELECT COALESCE(AVG(hour), 0) FROM flights WHERE origin = 'JFK';
SELECT MEDIAN(dep_delay) FILTER (WHERE month = 1) FROM flights;
SELECT AVG(distance / 100 + hour) FROM flights;
SELECT COUNT(*) FROM flights WHERE 1=1 AND month = 1;
SELECT COUNT(*) FROM flights WHERE TRUE;
SELECT COUNT(*) FROM flights WHERE late IS TRUE;
SELECT COUNT(*) FROM flights WHERE late IS NOT TRUE;
SELECT COUNT(*) FROM flights WHERE late IS NOT NULL;
SELECT COUNT(*) FROM flights WHERE carrier NOT ILIKE 'a_';
SELECT COUNT(*) FROM flights WHERE LEFT(origin, 1) = 'J' OR LENGTH(carrier) > 2;
SELECT COUNT(*) FROM flights WHERE origin || carrier = 'JFKAA';
SELECT COUNT(*) FROM flights WHERE hour + 1 > month;
SELECT COUNT(*) FROM flights WHERE hour BETWEEN month AND month + 6;
SELECT COUNT(*) FROM flights WHERE hour BETWEEN 6 AND 2 * 6;
SELECT COUNT(*) FROM flights WHERE hour = '5';
SELECT COUNT(*) FROM flights WHERE NOT (hour < 6 OR hour >= 22);
SELECT COUNT(*) FROM flights WHERE dep_delay >= 0.25 * 60;
SELECT COUNT(*) FROM flights WHERE FLOOR(distance / 500) IN (0, 1);
SELECT COUNT(*) FROM flights WHERE COALESCE(dep_delay, 0) >= 15;
SELECT COUNT(*) FROM flights WHERE CASE WHEN dep_delay >= 15 THEN 'late' ELSE 'ok' END = 'late';
SELECT COUNT(*) FROM flights WHERE CASE WHEN month IN (6, 7, 8) THEN hour < 12 ELSE late END;
SELECT COUNT(*) FROM flights WHERE COALESCE(late, FALSE);
SELECT COUNT(*) FROM flights WHERE (dep_delay >= 15) = late;
SELECT COUNT(*) FROM flights WHERE EXTRACT(month FROM day) = 2;
SELECT COUNT(*) FROM flights WHERE DAYOFWEEK(day) IN (0, 6);
SELECT COUNT(*) FROM flights WHERE date_part('quarter', day) = 1;
SELECT COUNT(*) FROM flights WHERE day BETWEEN '2013-02-01' AND '2013-02-10';
SELECT COUNT(*) FROM flights WHERE day + INTERVAL 7 DAY >= DATE '2013-03-01';
SELECT COUNT(*) FROM flights WHERE CAST(hour AS DOUBLE) / 2 < 3.5;
SELECT COUNT(*) FROM flights WHERE FLOOR(hour / 6) = 1;
SELECT COUNT(*) FROM flights WHERE hour // 6 = 1;
SELECT COUNT(*) FROM flights WHERE GREATEST(hour, month) < 8;
SELECT COUNT(*) FROM flights WHERE LN(month) < 1.5 AND TRUNC(hour / 5) = 2;
SELECT COUNT(*) FROM flights WHERE origin = 'JFK' AND (carrier = 'AA' OR month < 3) AND late;
SELECT EXTRACT(month FROM day) AS m, COUNT(*), SUM(month) FROM flights GROUP BY 1;
SELECT MONTH(day) AS m, YEAR(day) AS y, COUNT(*) FROM flights GROUP BY m, y;
SELECT month % 2 = 0 AS even, COUNT(*) FROM flights GROUP BY month % 2 = 0;
SELECT COUNT(CASE WHEN origin = 'JFK' THEN 1 END) FROM flights f;
SELECT COUNT_IF(late) FROM flights;
SELECT SUM(hour) FROM flights;
SELECT SUM(CASE carrier WHEN 'AA' THEN 1 WHEN 'UA' THEN 2 ELSE 0 END) FROM flights;
SELECT 100.0 * COUNT(*) / 1000 FROM flights;
SELECT AVG(hour) FROM flights;
SELECT AVG(CASE WHEN late THEN 1.0 ELSE 0 END) AS share FROM flights;
SELECT carrier, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY carrier;
SELECT AVG(hour) FILTER (WHERE late) - AVG(hour) FILTER (WHERE NOT late) AS diff FROM flights;
SELECT origin, AVG(hour) AS mean, SEM(hour) AS error FROM flights GROUP BY origin;
SELECT carrier, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM flights) AS pct FROM flights GROUP BY carrier;
SELECT MEDIAN(hour) FROM flights;
SELECT origin, month, SUM(COUNT(*)) OVER (PARTITION BY origin ORDER BY month DESC) AS since
  FROM flights GROUP BY origin, month;
SELECT hour // 6 AS quarter, origin, SUM(COUNT(*)) OVER (PARTITION BY origin ORDER BY hour // 6) AS up_to
  FROM flights GROUP BY 1, 2;
SELECT SUM(distance) FROM flights;
SELECT AVG(CASE WHEN dep_delay >= 0 AND dep_delay < 1440 THEN dep_delay ELSE 0 END) FROM flights
  WHERE dep_delay < 1440;
SELECT SUM(CASE WHEN distance < 500 THEN 0 WHEN distance < 1000 THEN distance ELSE 1000 END) FROM flights;
SELECT month, AVG(COUNT(*)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS smooth
  FROM flights GROUP BY month;
SELECT origin, COUNT(*) AS n, COUNT(*) - AVG(COUNT(*)) OVER () AS above FROM flights GROUP BY origin;
SELECT carrier, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM flights GROUP BY carrier;
SELECT AVG(n) AS per_month FROM (SELECT month, COUNT(*) AS n FROM flights GROUP BY month);
SELECT COUNT(*) FROM flights WHERE late;
SELECT COUNT(*) FROM flights WHERE carrier LIKE 'A%';
SELECT COUNT(*) FROM flights WHERE month % 2 = 0;
SELECT COUNT(*) FROM flights WHERE ABS(hour - 12) <= 2;
SELECT COUNT(*) FROM flights WHERE dep_delay >= 15 AND distance < 500;
SELECT COUNT(*) FROM flights WHERE YEAR(day) = 2013 AND MONTH(day) = month;
SELECT COUNT(*) FROM flights WHERE DAYNAME(day) = 'Monday';
SELECT COUNT(*) FROM flights WHERE carrier SIMILAR TO 'A.' OR carrier GLOB 'U*' OR CONCAT_WS('-', origin, carrier) = 'LGA-B6';
SELECT COUNT(*) FROM flights WHERE STRFTIME(day, '%Y-%m') = '2013-02' AND MAKE_DATE(2013, month, 1) <= day;
SELECT origin, COUNT(*) FROM flights GROUP BY 1;
SELECT hour // 6 AS quarter, origin, COUNT(*) FROM flights WHERE late GROUP BY quarter, origin;
SELECT CASE WHEN dep_delay >= 15 THEN 'late' WHEN dep_delay < 15 THEN 'ok' END AS how,
  LEFT(carrier, 1) AS first, COUNT(*) AS n FROM flights GROUP BY how, first;
SELECT origin AS airport, month AS m, COUNT(*) AS n FROM flights GROUP BY airport, m;
SELECT month, month % 2 AS odd, COUNT(*) AS n FROM flights GROUP BY month, odd;
SELECT month, hour, COUNT(*) FROM flights GROUP BY ALL HAVING COUNT(*) >= 10 ORDER BY month, 3 DESC;
SELECT origin, COUNT(*) FROM flights GROUP BY origin ORDER BY SUM(hour) DESC NULLS LAST LIMIT 2 OFFSET 1;
WITH jfk AS (SELECT * FROM flights WHERE origin = 'JFK') SELECT carrier, COUNT(*) FROM jfk GROUP BY carrier;
SELECT part, SUM(h) FROM (SELECT hour AS h, IF(hour < 12, 'am', 'pm') AS part FROM flights f WHERE f.late) AS t
  GROUP BY part;
SELECT s.*, s.n - s.m AS rest FROM (SELECT origin, COUNT(*) AS n, COUNT(hour) AS m FROM flights GROUP BY origin) s
  WHERE n > 10;
WITH t AS (SELECT COUNT(*) AS total FROM flights) SELECT origin, 1.0 * COUNT(*) / t.total AS share FROM flights, t
  GROUP BY origin, t.total;
WITH f AS (SELECT * FROM flights WHERE late)
  SELECT 'jfk' AS airport, COUNT(*) AS n FROM f WHERE origin = 'JFK' UNION ALL
  SELECT 'lga', COUNT(*) FROM f WHERE origin = 'LGA' ORDER BY n DESC;
SELECT * FROM (SELECT carrier, origin FROM flights) PIVOT (COUNT(*) FOR origin IN ('JFK', 'LGA'));
SELECT f.carrier, a.name, COUNT(*) FROM flights f LEFT JOIN airlines a ON f.carrier = a.carrier GROUP BY ALL;
SELECT season, COUNT(*) FROM flights JOIN seasons USING (month) WHERE season <> 'winter' GROUP BY season;
SELECT t.carrier, a.name, t.n FROM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) t
  JOIN airlines a USING (carrier);
SELECT COUNT(*) FROM flights WHERE LOWER(origin) IN ('jfk', 'lga');
SELECT COUNT(*) FROM flights WHERE late IS DISTINCT FROM (dep_delay >= 15);
SELECT AVG(hour) + 1.96 * STDDEV(hour) / SQRT(COUNT(hour)) AS upper FROM flights;
SELECT origin, UPPER(carrier) AS code, COUNT(*) AS n FROM flights GROUP BY origin, carrier;
SELECT origin, MODE(carrier) AS usual FROM flights GROUP BY origin;
SELECT COUNT(*) FROM flights WHERE day < DATE '2013-01-01' + INTERVAL 1 MONTH;
SELECT origin, REGR_SLOPE(hour, month), REGR_INTERCEPT(hour, month), REGR_R2(hour, month) FROM flights GROUP BY origin;
SELECT SUM(CASE WHEN dep_delay < 0 THEN 1 WHEN dep_delay < 15 THEN 2 ELSE 0 END) FROM flights;
SELECT COVAR_SAMP(month, hour) FROM flights;
SELECT COUNT(*) FROM flights WHERE (origin, carrier) IN (('JFK', 'AA'), ('EWR', 'UA'));
SELECT origin, hour < 12 AS early, COUNT(*) FROM flights GROUP BY ALL;
SELECT origin, AVG(hour) - (SELECT AVG(hour) FROM flights) AS above FROM flights WHERE late GROUP BY origin;
SELECT AVG(dep_delay) FROM flights WHERE dep_delay >= -60 AND dep_delay < 1440;
SELECT (SELECT COUNT(*) FROM flights WHERE late) AS late, (SELECT AVG(hour) FROM flights) AS hour;
