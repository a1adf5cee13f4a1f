-- Statements over flights of 2013 from New York, with the weather of the hour joined by the owner.
-- Written as analysts write, before it was tried which of them are compiled.

-- how many
SELECT COUNT(*) FROM flights;
SELECT count(*) AS flights_total FROM flights WHERE origin = 'JFK';
SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin ORDER BY n DESC;
SELECT carrier, COUNT(*) AS num_flights FROM flights GROUP BY carrier ORDER BY num_flights DESC LIMIT 10;
SELECT month, COUNT(*) AS n FROM flights GROUP BY month ORDER BY month;
SELECT f.dest, COUNT(*) AS n FROM flights f WHERE f.origin = 'LGA' GROUP BY f.dest ORDER BY 2 DESC LIMIT 20;
SELECT month, day, COUNT(*) FROM flights GROUP BY month, day;
SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY 1, 2 ORDER BY 1, 3 DESC;
SELECT COUNT(dep_delay) AS departed, COUNT(*) - COUNT(dep_delay) AS cancelled FROM flights;
SELECT origin, SUM(CASE WHEN dep_delay IS NULL THEN 1 ELSE 0 END) AS cancelled FROM flights GROUP BY origin;
SELECT month, COUNT(*) FILTER (WHERE dep_delay IS NULL) AS cancelled, COUNT(*) AS total FROM flights GROUP BY month ORDER BY cancelled DESC;
SELECT COUNT(*) FROM flights WHERE carrier IN ('UA', 'AA', 'DL') AND month BETWEEN 6 AND 8;
SELECT COUNT(*) FROM flights WHERE dest LIKE 'S%';
SELECT COUNT(*) FROM flights WHERE dest IN ('SFO', 'OAK', 'SJC') AND carrier <> 'UA';
SELECT carrier, count(*) FROM flights WHERE month = 12 AND day = 25 GROUP BY carrier;
SELECT origin, dest, COUNT(*) AS n FROM flights GROUP BY origin, dest HAVING COUNT(*) > 5000 ORDER BY n DESC;
SELECT COUNT(*) AS n, origin || '-' || carrier AS pair FROM flights GROUP BY pair ORDER BY n DESC LIMIT 5;
SELECT hour, COUNT(*) AS departures FROM flights WHERE hour >= 5 GROUP BY hour ORDER BY hour;
SELECT COUNT(*) FROM flights WHERE NOT (origin = 'EWR' OR origin = 'LGA');
SELECT COUNT(*) FROM flights WHERE (origin, dest) IN (('JFK', 'LAX'), ('JFK', 'SFO'), ('EWR', 'SFO'));

-- delays
SELECT COUNT(*) FROM flights WHERE dep_delay > 60;
SELECT carrier, COUNT(*) AS late FROM flights WHERE arr_delay >= 15 GROUP BY carrier ORDER BY late DESC;
SELECT month, SUM(CASE WHEN dep_delay > 15 THEN 1 ELSE 0 END) AS late, SUM(CASE WHEN dep_delay <= 15 THEN 1 ELSE 0 END) AS on_time FROM flights GROUP BY month;
SELECT COUNT(*) FROM flights WHERE arr_delay > 120 AND dep_delay <= 0;
-- refused: (dep_delay - arr_delay) > 30 has 1,990,021 combinations of declared values, and at most 131,072 are evaluated
SELECT COUNT(*) FROM flights WHERE dep_delay >= 60 AND dep_delay - arr_delay > 30;
SELECT CASE WHEN dep_delay < 0 THEN 'early' WHEN dep_delay = 0 THEN 'on time' WHEN dep_delay <= 15 THEN 'slightly late' WHEN dep_delay <= 60 THEN 'late' ELSE 'very late' END AS bucket, COUNT(*) AS n FROM flights WHERE dep_delay IS NOT NULL GROUP BY bucket ORDER BY n DESC;
SELECT origin, CASE WHEN arr_delay > 0 THEN 'late' ELSE 'ok' END AS status, COUNT(*) FROM flights WHERE arr_delay IS NOT NULL GROUP BY 1, 2;
SELECT FLOOR(dep_delay / 60) AS hours_late, COUNT(*) AS n FROM flights WHERE dep_delay >= 0 GROUP BY 1 ORDER BY 1;
SELECT dep_delay // 30 * 30 AS delay_bucket, COUNT(*) FROM flights WHERE dep_delay BETWEEN 0 AND 299 GROUP BY ALL ORDER BY ALL;
SELECT carrier, COUNT(*) FILTER (WHERE dep_delay > 30) AS late30, COUNT(*) FILTER (WHERE dep_delay > 60) AS late60, COUNT(*) FILTER (WHERE dep_delay > 120) AS late120 FROM flights GROUP BY carrier;
SELECT SUM(dep_delay) AS minutes_lost FROM flights WHERE dep_delay > 0;
SELECT carrier, SUM(arr_delay) AS total_delay FROM flights GROUP BY carrier ORDER BY total_delay DESC;
SELECT carrier, SUM(GREATEST(arr_delay, 0)) / 60.0 AS hours_late FROM flights GROUP BY carrier;
SELECT COUNT(*) FROM flights WHERE ABS(arr_delay) <= 5;
SELECT COUNT_IF(dep_delay > 0) AS late, COUNT_IF(dep_delay <= 0) AS not_late FROM flights;
SELECT origin, COUNT(CASE WHEN dep_delay > 15 THEN 1 END) AS late FROM flights GROUP BY origin;
SELECT month, SUM(IF(arr_delay > 30, 1, 0)) AS late FROM flights GROUP BY month;
SELECT COUNT(*) FROM flights WHERE COALESCE(dep_delay, 0) > 30;
-- refused: COALESCE(arr_delay, dep_delay, 0) > 30 has 1,990,021 combinations of declared values, and at most 131,072 are evaluated
SELECT COUNT(*) FROM flights WHERE COALESCE(arr_delay, dep_delay, 0) > 30 AND month = 7;
SELECT dest, COUNT(*) AS n FROM flights WHERE dep_delay > 180 GROUP BY dest HAVING n >= 10 ORDER BY n DESC;

-- rates, averages, shares
SELECT AVG(dep_delay) AS avg_delay FROM flights;
SELECT carrier, AVG(arr_delay) AS avg_arr_delay FROM flights GROUP BY carrier ORDER BY avg_arr_delay DESC;
SELECT origin, ROUND(AVG(dep_delay), 2) AS mean_delay FROM flights GROUP BY origin;
SELECT month, 100.0 * COUNT(*) FILTER (WHERE dep_delay > 15) / COUNT(*) AS pct_late FROM flights GROUP BY month ORDER BY month;
SELECT carrier, AVG(CASE WHEN arr_delay > 15 THEN 1.0 ELSE 0.0 END) AS late_rate FROM flights GROUP BY carrier ORDER BY late_rate DESC LIMIT 5;
SELECT origin, SUM(CASE WHEN dep_delay IS NULL THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS cancel_pct FROM flights GROUP BY origin;
SELECT carrier, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY carrier ORDER BY share DESC;
SELECT hour, AVG(dep_delay) FROM flights GROUP BY hour ORDER BY hour;
SELECT AVG(dep_delay) FILTER (WHERE origin = 'JFK') - AVG(dep_delay) FILTER (WHERE origin = 'LGA') AS jfk_minus_lga FROM flights;
SELECT SUM(dep_delay) / COUNT(dep_delay) AS mean_delay FROM flights;
SELECT carrier, SUM(arr_delay) * 1.0 / NULLIF(COUNT(arr_delay), 0) AS mean_arr FROM flights GROUP BY carrier;
SELECT dest, AVG(arr_delay) AS d, COUNT(*) AS n FROM flights GROUP BY dest HAVING COUNT(*) >= 1000 ORDER BY d DESC LIMIT 10;
SELECT STDDEV(dep_delay) FROM flights WHERE month = 1;
SELECT carrier, VAR_SAMP(arr_delay) AS v FROM flights GROUP BY carrier;
SELECT COUNT(*) FILTER (WHERE origin = 'JFK') / COUNT(*) AS jfk_share FROM flights;
SELECT COUNT(*) FILTER (WHERE dep_delay > 0)::DOUBLE / COUNT(*) AS share_late FROM flights;
SELECT month, AVG(distance) AS mean_miles FROM flights GROUP BY month;

-- medians, quantiles, running totals
SELECT MEDIAN(dep_delay) FROM flights;
SELECT carrier, MEDIAN(arr_delay) AS med FROM flights GROUP BY carrier ORDER BY med;
SELECT QUANTILE_CONT(dep_delay, 0.9) AS p90 FROM flights;
SELECT origin, PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY dep_delay) AS p95 FROM flights GROUP BY origin;
SELECT month, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY month) AS running FROM flights GROUP BY month ORDER BY month;
SELECT MEDIAN(distance) FROM flights WHERE carrier = 'B6';

-- time
SELECT EXTRACT(month FROM date) AS m, COUNT(*) FROM flights GROUP BY 1 ORDER BY 1;
SELECT DAYNAME(date) AS weekday, COUNT(*) AS n FROM flights GROUP BY weekday ORDER BY n DESC;
SELECT DATE_TRUNC('month', date) AS month_start, COUNT(*) FROM flights GROUP BY month_start ORDER BY month_start;
SELECT DATE_TRUNC('week', date) AS week, COUNT(*) AS n FROM flights GROUP BY 1 ORDER BY 1;
SELECT EXTRACT(dow FROM date) IN (0, 6) AS weekend, COUNT(*) FROM flights GROUP BY weekend;
SELECT QUARTER(date) AS q, carrier, COUNT(*) FROM flights GROUP BY q, carrier ORDER BY q, carrier;
SELECT COUNT(*) FROM flights WHERE date >= '2013-07-01' AND date < '2013-08-01';
SELECT COUNT(*) FROM flights WHERE date BETWEEN DATE '2013-12-20' AND DATE '2013-12-31' AND dep_delay > 30;
SELECT date, COUNT(*) AS n FROM flights WHERE MONTH(date) = 2 GROUP BY date ORDER BY n DESC LIMIT 3;
SELECT CASE WHEN hour < 6 THEN 'night' WHEN hour < 12 THEN 'morning' WHEN hour < 18 THEN 'afternoon' ELSE 'evening' END AS part_of_day, COUNT(*) AS n FROM flights GROUP BY part_of_day;
SELECT CASE WHEN hour BETWEEN 6 AND 9 THEN 'rush' WHEN hour BETWEEN 16 AND 19 THEN 'rush' ELSE 'other' END AS period, SUM(CASE WHEN dep_delay > 15 THEN 1 ELSE 0 END) AS late, COUNT(*) AS n FROM flights GROUP BY period;
SELECT CASE month WHEN 12 THEN 'winter' WHEN 1 THEN 'winter' WHEN 2 THEN 'winter' WHEN 6 THEN 'summer' WHEN 7 THEN 'summer' WHEN 8 THEN 'summer' ELSE 'between' END AS season, COUNT(*) FROM flights GROUP BY season;
SELECT month, hour, COUNT(*) FROM flights WHERE origin = 'EWR' GROUP BY month, hour;
SELECT STRFTIME(date, '%Y-%m') AS ym, COUNT(*) FROM flights GROUP BY ym;
SELECT month <= 6 AS first_half, COUNT(*) FROM flights GROUP BY month <= 6;
SELECT MONTHNAME(date) AS month_name, AVG(dep_delay) AS d FROM flights GROUP BY month_name ORDER BY d DESC;
SELECT COUNT(*) FROM flights WHERE hour * 60 + 30 >= 720;

-- distance, air time, weather
SELECT COUNT(*) FROM flights WHERE distance >= 1000;
SELECT CASE WHEN distance < 500 THEN 'short' WHEN distance < 1500 THEN 'medium' ELSE 'long' END AS haul, COUNT(*) AS n FROM flights GROUP BY haul ORDER BY n;
-- refused: FLOOR(distance / 500) is not constant on the cell [3000, 5000) of 'distance', which is counted as one
SELECT FLOOR(distance / 500) AS band, COUNT(*) FROM flights GROUP BY band ORDER BY band;
-- refused: FLOOR(distance / 500) * 500 is not constant on the cell [3000, 5000) of 'distance', which is counted as one
SELECT FLOOR(distance / 500) * 500 AS miles, carrier, COUNT(*) AS n FROM flights GROUP BY miles, carrier;
SELECT COUNT(*) FROM flights WHERE distance / 1000 >= 2;
SELECT COUNT(*) FROM flights WHERE air_time / 60 < 2;
SELECT origin, SUM(distance) AS miles FROM flights GROUP BY origin;
SELECT COUNT(*) FROM flights WHERE temp < 32;
SELECT COUNT(*) FROM flights WHERE (temp - 32) * 5 / 9 < 0;
SELECT CASE WHEN temp < 32 THEN 'freezing' WHEN temp < 60 THEN 'mild' WHEN temp >= 60 THEN 'warm' END AS weather, COUNT(*) AS n, COUNT(*) FILTER (WHERE dep_delay > 30) AS late FROM flights GROUP BY weather;
-- refused: precip > 0 is not constant on the cell [0, 0.01) of 'precip', which is counted as one
SELECT precip > 0 AS rain, COUNT(*) FROM flights GROUP BY rain;
SELECT precip >= 0.01 AS rain, COUNT(*) AS n, COUNT(CASE WHEN dep_delay > 60 THEN 1 END) AS late FROM flights WHERE precip IS NOT NULL GROUP BY 1;
SELECT visib < 2 AS fog, AVG(dep_delay) FROM flights WHERE visib IS NOT NULL GROUP BY fog;
SELECT COUNT(*) FROM flights WHERE wind_speed >= 20 AND visib < 5;
SELECT origin, COUNT(*) FROM flights WHERE temp >= 80 AND precip >= 0.01 GROUP BY origin;
SELECT temp, COUNT(*) FROM flights GROUP BY temp;
-- refused: a correlation of 'temp' is not supported
SELECT CORR(temp, dep_delay) FROM flights;

-- with, sub-selects, joins, unions
WITH late AS (SELECT * FROM flights WHERE dep_delay > 15) SELECT carrier, COUNT(*) AS n FROM late GROUP BY carrier ORDER BY n DESC;
WITH f AS (SELECT origin, carrier, dep_delay > 15 AS late FROM flights WHERE dep_delay IS NOT NULL) SELECT origin, COUNT(*) AS n, SUM(CASE WHEN late THEN 1 ELSE 0 END) AS late FROM f GROUP BY origin;
SELECT season, COUNT(*) FROM (SELECT CASE WHEN month IN (12, 1, 2) THEN 'winter' WHEN month IN (3, 4, 5) THEN 'spring' WHEN month IN (6, 7, 8) THEN 'summer' ELSE 'autumn' END AS season FROM flights) AS s GROUP BY season;
SELECT band, COUNT(*) AS n FROM (SELECT hour // 6 AS band, * FROM flights) t WHERE origin = 'JFK' GROUP BY band;
WITH a AS (SELECT * FROM flights WHERE month = 1), b AS (SELECT * FROM a WHERE origin = 'JFK') SELECT COUNT(*) FROM b;
SELECT a.name, COUNT(*) AS n FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY a.name ORDER BY n DESC;
SELECT name, COUNT(*) AS n FROM flights JOIN airlines USING (carrier) WHERE dep_delay > 60 GROUP BY name;
SELECT f.carrier, a.name, COUNT(*) AS n FROM flights f LEFT JOIN airlines a ON a.carrier = f.carrier GROUP BY f.carrier, a.name;
SELECT season, COUNT(*) AS n, AVG(arr_delay) AS d FROM flights JOIN seasons USING (month) GROUP BY season;
SELECT 'jfk' AS airport, COUNT(*) AS n FROM flights WHERE origin = 'JFK' UNION ALL SELECT 'lga', COUNT(*) FROM flights WHERE origin = 'LGA';
SELECT COUNT(*) FROM flights WHERE month = 1 UNION ALL SELECT COUNT(*) FROM flights WHERE month = 2;
SELECT carrier, n FROM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) t WHERE n > 10000 ORDER BY n DESC;
WITH counts AS (SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest) SELECT dest, n FROM counts ORDER BY n DESC LIMIT 10;
SELECT COUNT(*) FROM flights WHERE carrier IN (SELECT carrier FROM airlines WHERE name LIKE '%Air%');
SELECT origin, month, COUNT(*) FROM flights GROUP BY ROLLUP (origin, month);
SELECT origin, carrier, COUNT(*) FROM flights GROUP BY CUBE (origin, carrier);
-- refused: is not supported; it is not a sum over rows
SELECT COUNT(DISTINCT dest) FROM flights;
-- refused: a single row decides it
SELECT MAX(dep_delay) FROM flights;
SELECT UPPER(LEFT(dest, 1)) AS initial, COUNT(*) FROM flights GROUP BY initial ORDER BY initial;
SELECT carrier = 'UA' AS united, origin, COUNT(*) AS n FROM flights GROUP BY ALL;
