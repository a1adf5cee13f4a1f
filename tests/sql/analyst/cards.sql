-- Statements over transactions of payment cards, in the habits of several databases and tools.

WITH m AS (SELECT DATE_TRUNC('month', booked) AS month, COUNT(*) AS n FROM cards GROUP BY 1), g AS (SELECT month, n, LAG(n, 12) OVER (ORDER BY month) AS year_before FROM m) SELECT month, n, year_before, 100.0 * (n - year_before) / year_before AS growth FROM g WHERE year_before IS NOT NULL ORDER BY month;
WITH m AS (SELECT YEAR(booked) AS y, MONTH(booked) AS m, COUNT(*) AS n FROM cards GROUP BY 1, 2) SELECT y, m, n, n - LAG(n) OVER (PARTITION BY m ORDER BY y) AS change FROM m ORDER BY y, m;
SELECT * FROM (SELECT MONTH(booked) AS m, COUNT(*) AS n, LAG(COUNT(*)) OVER (ORDER BY MONTH(booked)) AS p FROM cards WHERE YEAR(booked) = 2024 GROUP BY 1) t WHERE m > 1;
SELECT category, n, SUM(n) OVER (ORDER BY n DESC) AS running FROM (SELECT category, COUNT(*) AS n FROM cards GROUP BY category) t;
SELECT category, COUNT(*) AS n, 100.0 * SUM(COUNT(*)) OVER (ORDER BY COUNT(*) DESC) / SUM(COUNT(*)) OVER () AS cumulative FROM cards GROUP BY category ORDER BY n DESC;
SELECT category, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY COUNT(*) DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running FROM cards GROUP BY category;
WITH top AS (SELECT category FROM cards GROUP BY category ORDER BY COUNT(*) DESC LIMIT 3) SELECT c.country, c.category, COUNT(*) AS n FROM cards c JOIN top t ON c.category = t.category GROUP BY c.country, c.category;
SELECT country, category, COUNT(*) AS n FROM cards WHERE category IN (SELECT category FROM cards GROUP BY category ORDER BY COUNT(*) DESC LIMIT 3) GROUP BY country, category;
WITH n AS (SELECT category, COUNT(*) AS n FROM cards GROUP BY category), r AS (SELECT category, RANK() OVER (ORDER BY n DESC) AS place FROM n) SELECT n.category, n.n, r.place FROM n JOIN r ON n.category = r.category ORDER BY r.place;
SELECT category, COUNT(*) AS n, CASE WHEN COUNT(*) >= 1500 THEN 'large' WHEN COUNT(*) >= 1000 THEN 'medium' ELSE 'small' END AS size FROM cards GROUP BY category;
SELECT country, CASE WHEN AVG(fee) > 2.5 THEN 'above' ELSE 'below' END AS level, COUNT(*) AS n FROM cards GROUP BY country ORDER BY country;
SELECT country, SUM(CASE WHEN fraud THEN 1 ELSE 0 END) AS frauds, CASE WHEN SUM(CASE WHEN fraud THEN 1 ELSE 0 END) > 200 THEN 1 ELSE 0 END AS flag FROM cards GROUP BY country;
SELECT country, IF(COUNT(*) > 1000, 'big', 'small') AS size, COUNT(*) AS n FROM cards GROUP BY country;
SELECT card_type, COUNT(*) AS n FROM cards GROUP BY card_type ORDER BY CASE card_type WHEN 'debit' THEN 1 WHEN 'credit' THEN 2 ELSE 3 END;
SELECT country, category, COUNT(*) AS n, FIRST_VALUE(category) OVER (PARTITION BY country ORDER BY COUNT(*) DESC) AS favourite FROM cards GROUP BY country, category;
SELECT country, category, COUNT(*) AS n, MAX(COUNT(*)) OVER (PARTITION BY country) AS most FROM cards GROUP BY country, category;
SELECT country, category, COUNT(*) AS n, 1.0 * COUNT(*) / MAX(COUNT(*)) OVER (PARTITION BY country) AS relative FROM cards GROUP BY country, category;
WITH c AS (SELECT country, COUNT(*) AS n FROM cards GROUP BY country), a AS (SELECT AVG(n) AS mean FROM c) SELECT c.country, c.n, c.n - a.mean AS diff FROM c CROSS JOIN a ORDER BY diff DESC;
WITH c AS (SELECT country, COUNT(*) AS n FROM cards GROUP BY country), a AS (SELECT AVG(n) AS mean FROM c) SELECT country, n FROM c WHERE n > (SELECT mean FROM a);
SELECT country, COUNT(*) AS n FROM cards GROUP BY country HAVING COUNT(*) > (SELECT AVG(n) FROM (SELECT country, COUNT(*) AS n FROM cards GROUP BY country) t);
WITH c AS (SELECT country, COUNT(*) AS n FROM cards GROUP BY country) SELECT country, n, CASE WHEN n > 1000 THEN 'big' ELSE 'small' END AS size FROM c;
-- duckdb: SELECT country, GREATEST(COUNT(*) - 1000, 0) AS above FROM cards GROUP BY country;
SELECT country, GREATEST(COUNT(*) - 1000, 0) AS above FROM cards GROUP BY country;
-- duckdb: SELECT * FROM (PIVOT cards ON status USING COUNT(*) GROUP BY country) ORDER BY country;
PIVOT cards ON status USING COUNT(*) GROUP BY country ORDER BY country;
-- duckdb: SELECT country, COUNT(*) FILTER (WHERE status = 'approved') AS approved, COUNT(*) FILTER (WHERE status = 'declined') AS declined, COUNT(*) FILTER (WHERE status = 'reversed') AS reversed FROM cards GROUP BY country ORDER BY approved DESC;
SELECT * FROM (PIVOT cards ON status USING COUNT(*) GROUP BY country) ORDER BY approved DESC;
SELECT co.name, COUNT(*) * 1.0 / co.population AS per_million FROM cards c JOIN countries co ON c.country = co.country GROUP BY co.name, co.population ORDER BY per_million DESC;
SELECT co.zone, COUNT(*) AS n FROM countries co LEFT JOIN cards c ON c.country = co.country GROUP BY co.zone;
SELECT co.name, COUNT(c.country) AS n FROM countries co LEFT JOIN cards c ON c.country = co.country GROUP BY co.name ORDER BY n DESC;
SELECT co.name, COUNT(c.country) AS n FROM countries co LEFT JOIN cards c ON c.country = co.country AND c.fraud GROUP BY co.name;
SELECT co.name, SUM(c.fee) AS fees FROM cards c RIGHT JOIN countries co ON co.country = c.country GROUP BY co.name;
SELECT co.zone, s.sector, COUNT(*) AS n FROM cards c JOIN countries co USING (country) JOIN sectors s USING (category) GROUP BY 1, 2;
SELECT s.sector, SUM(c.fee * s.rate) AS weighted FROM cards c JOIN sectors s ON s.category = c.category GROUP BY s.sector;
SELECT COALESCE(s.sector, 'none') AS sector, COUNT(*) AS n FROM cards c LEFT JOIN sectors s ON s.category = c.category GROUP BY 1;
SELECT COUNT(*) FROM cards c LEFT JOIN sectors s ON s.category = c.category WHERE s.category IS NULL;
SELECT category, COUNT(*) AS n FROM cards WHERE category IN (SELECT category FROM sectors WHERE rate >= 2) GROUP BY category;
SELECT co.name, MAX(co.population) AS population, COUNT(*) / MAX(co.population) AS per_head FROM cards c JOIN countries co ON c.country = co.country GROUP BY co.name;
SELECT COALESCE(country, 'All countries') AS country, COUNT(*) AS n, SUM(fee) AS fees FROM cards GROUP BY ROLLUP (country);
SELECT CASE WHEN GROUPING(country) = 1 THEN 'All' ELSE country END AS country, CASE WHEN GROUPING(card_type) = 1 THEN 'All' ELSE card_type END AS card_type, COUNT(*) AS n FROM cards GROUP BY CUBE (country, card_type);
SELECT country, card_type, COUNT(*) AS n, GROUPING(country) AS g1, GROUPING(card_type) AS g2 FROM cards GROUP BY ROLLUP (country, card_type) ORDER BY g1, g2, country, card_type;
SELECT card_type, COUNT(*) AS n, SUM(fee) AS fees FROM cards GROUP BY card_type UNION ALL SELECT 'Total', COUNT(*), SUM(fee) FROM cards;
SELECT t.* FROM (SELECT card_type, COUNT(*) AS n FROM cards GROUP BY card_type UNION ALL SELECT 'Total' AS card_type, COUNT(*) AS n FROM cards) t ORDER BY t.n;
WITH t AS (SELECT card_type, COUNT(*) AS n FROM cards GROUP BY card_type UNION ALL SELECT 'Total', COUNT(*) FROM cards) SELECT card_type, n FROM t ORDER BY n DESC;
SELECT kind, n FROM (SELECT 'fraud' AS kind, COUNT(*) AS n FROM cards WHERE fraud UNION ALL SELECT 'declined' AS kind, COUNT(*) AS n FROM cards WHERE status = 'declined') t WHERE n > 100;
SELECT HOUR(booked_at) AS h, COUNT(*) AS n FROM cards GROUP BY HOUR(booked_at) ORDER BY h;
-- dialect: duckdb
SELECT DAYNAME(booked) AS day, COUNT(*) AS n FROM cards GROUP BY DAYNAME(booked) ORDER BY MIN(ISODOW(booked));
-- dialect: duckdb
-- duckdb: SELECT DAYNAME(booked) AS day, COUNT(*) AS n FROM cards GROUP BY DAYNAME(booked) ORDER BY MIN(ISODOW(booked));
SELECT DAYNAME(booked) AS day, COUNT(*) AS n FROM cards GROUP BY DAYNAME(booked) ORDER BY ISODOW(booked);
-- dialect: mysql
-- duckdb: SELECT DAYNAME(booked) AS day, COUNT(*) AS n FROM cards GROUP BY DAYNAME(booked) ORDER BY MIN(ISODOW(booked));
SELECT DAYNAME(booked) AS day, COUNT(*) AS n FROM cards GROUP BY DAYNAME(booked), WEEKDAY(booked) ORDER BY WEEKDAY(booked);
SELECT CASE WHEN ISODOW(booked_at) >= 6 THEN 'weekend' ELSE 'week' END AS part, HOUR(booked_at) AS h, COUNT(*) AS n FROM cards GROUP BY 1, 2 ORDER BY 1, 2;
SELECT CASE WHEN amount < 20 THEN 'small' WHEN amount < 200 THEN 'medium' ELSE 'large' END AS size, COUNT(*) AS n, AVG(amount) AS mean FROM cards GROUP BY 1;
SELECT category, SUM(amount) AS total, AVG(amount) AS mean, MEDIAN(amount) AS middle, COUNT(*) FILTER (WHERE amount >= 100) AS big FROM cards GROUP BY category;
SELECT country, SUM(amount) / COUNT(*) AS ticket, SUM(CASE WHEN amount >= 200 THEN amount ELSE 0 END) / SUM(amount) AS share FROM cards GROUP BY country;
SELECT country, SUM(amount * fee) AS weighted FROM cards GROUP BY country;
SELECT category, SUM(fee * installments) AS total, SUM(fee * installments) / SUM(installments) AS mean FROM cards GROUP BY category;
-- dialect: bigquery
-- duckdb: SELECT country, COUNT(*) FILTER (WHERE fraud) AS frauds, COUNT(*) FILTER (WHERE fraud) / COUNT(*) AS rate FROM cards GROUP BY country ORDER BY rate DESC;
SELECT country, COUNTIF(fraud) AS frauds, SAFE_DIVIDE(COUNTIF(fraud), COUNT(*)) AS rate FROM `bank.cards` GROUP BY country ORDER BY rate DESC;
-- dialect: bigquery
-- duckdb: SELECT CAST(DATE_TRUNC('month', booked) AS DATE) AS month, COUNT(*) AS n FROM cards GROUP BY month;
SELECT DATE_TRUNC(booked, MONTH) AS month, COUNT(*) AS n FROM `bank.cards` GROUP BY month ORDER BY month;
-- dialect: bigquery
-- duckdb: SELECT split_part(category, ' ', 1) AS word, COUNT(*) AS n FROM cards GROUP BY word;
SELECT SPLIT(category, ' ')[SAFE_OFFSET(0)] AS word, COUNT(*) AS n FROM `bank.cards` GROUP BY word;
-- dialect: snowflake
-- duckdb: SELECT country, COUNT(*) FILTER (WHERE status = 'declined') / COUNT(*) AS rate FROM cards GROUP BY country;
SELECT country, DIV0(COUNT_IF(status = 'declined'), COUNT(*)) AS rate FROM cards GROUP BY country;
-- dialect: snowflake
-- duckdb: SELECT country, category, COUNT(*) AS n FROM cards GROUP BY country, category QUALIFY ROW_NUMBER() OVER (PARTITION BY country ORDER BY COUNT(*) DESC) <= 2;
SELECT country, category, COUNT(*) AS n FROM cards GROUP BY country, category QUALIFY ROW_NUMBER() OVER (PARTITION BY country ORDER BY n DESC) <= 2;
-- dialect: tsql
-- duckdb: SELECT country, COUNT(*) FILTER (WHERE status = 'approved') AS approved, COUNT(*) FILTER (WHERE status = 'declined') AS declined FROM cards GROUP BY country;
SELECT country, [approved], [declined] FROM (SELECT country, status FROM cards) AS s PIVOT (COUNT(status) FOR status IN ([approved], [declined])) AS p;
-- dialect: tsql
-- duckdb: SELECT CAST(DATE_TRUNC('month', booked) AS DATE) AS m, COUNT(*) AS n FROM cards GROUP BY 1;
SELECT DATEFROMPARTS(YEAR(booked), MONTH(booked), 1) AS m, COUNT(*) AS n FROM dbo.cards GROUP BY DATEFROMPARTS(YEAR(booked), MONTH(booked), 1);
-- dialect: tsql
-- duckdb: SELECT last_day(booked) AS m, COUNT(*) AS n FROM cards GROUP BY 1;
SELECT EOMONTH(booked) AS m, COUNT(*) AS n FROM dbo.cards GROUP BY EOMONTH(booked);
-- dialect: tsql
-- duckdb: SELECT category, CASE WHEN COUNT(*) > 1000 THEN 'busy' ELSE 'calm' END AS pace, COUNT(*) AS n FROM cards GROUP BY category;
SELECT category, IIF(COUNT(*) > 1000, 'busy', 'calm') AS pace, COUNT(*) AS n FROM dbo.cards GROUP BY category;
-- dialect: postgres
-- duckdb: SELECT COUNT(*) FROM cards WHERE regexp_matches(category, 'shop|rest', 'i');
SELECT COUNT(*) FROM cards WHERE category ~* 'SHOP|rest';
-- dialect: postgres
-- duckdb: SELECT country, SUM(CASE WHEN fraud THEN 1 ELSE 0 END) / COUNT(*) AS rate FROM cards GROUP BY country;
SELECT country, ROUND(SUM(CASE WHEN fraud THEN 1 ELSE 0 END)::NUMERIC / COUNT(*), 9) AS rate FROM cards GROUP BY country;
-- dialect: postgres
-- duckdb: SELECT COUNT(*) FROM cards WHERE booked >= DATE '2024-03-01';
SELECT COUNT(*) FROM cards WHERE booked >= TO_DATE('01.03.2024', 'DD.MM.YYYY');
-- dialect: postgres
-- duckdb: SELECT booked_at::DATE AS d, COUNT(*) AS n FROM cards GROUP BY 1;
SELECT booked_at::date AS d, COUNT(*) AS n FROM cards GROUP BY 1 ORDER BY 1;
-- dialect: mysql
-- duckdb: SELECT strftime(booked, '%Y-%m') AS month, COUNT(*) AS n FROM cards GROUP BY 1 ORDER BY month;
SELECT DATE_FORMAT(booked, '%Y-%m') AS month, COUNT(*) AS n FROM cards GROUP BY month ORDER BY month;
-- dialect: mysql
-- duckdb: SELECT COALESCE(card_type, 'Total') AS card_type, COUNT(*) AS n FROM cards GROUP BY ROLLUP (card_type);
SELECT IFNULL(card_type, 'Total') AS card_type, COUNT(*) AS n FROM cards GROUP BY card_type WITH ROLLUP;
-- dialect: mysql
-- duckdb: SELECT card_type, COUNT(*) AS n FROM cards GROUP BY card_type ORDER BY list_position(['debit', 'prepaid', 'credit'], card_type);
SELECT card_type, COUNT(*) AS n FROM cards GROUP BY card_type ORDER BY FIELD(card_type, 'debit', 'prepaid', 'credit');
-- refused: 'card_id' names the person
SELECT card_id, COUNT(*) AS n FROM cards GROUP BY card_id ORDER BY n DESC LIMIT 10;
-- refused: amount >= 50 AND amount < 200
SELECT COUNT(*) FROM cards WHERE amount BETWEEN 50 AND 200;
-- refused: LAG
SELECT a.country, a.n, b.n AS before FROM (SELECT country, YEAR(booked) AS y, COUNT(*) AS n FROM cards GROUP BY 1, 2) a JOIN (SELECT country, YEAR(booked) AS y, COUNT(*) AS n FROM cards GROUP BY 1, 2) b ON a.country = b.country AND a.y - 1 = b.y;
-- refused: paste the compiled SQL
SELECT country, COUNT(*) AS n FROM {{ ref('cards') }} GROUP BY country;
SELECT DATE_TRUNC('quarter', booked) AS q, SUM(fee) AS fees, SUM(fee) - LAG(SUM(fee)) OVER (ORDER BY DATE_TRUNC('quarter', booked)) AS change FROM cards GROUP BY 1 ORDER BY 1;
WITH monthly AS (SELECT YEAR(booked) AS y, MONTH(booked) AS m, COUNT(*) AS n FROM cards GROUP BY y, m) SELECT m, SUM(CASE WHEN y = 2023 THEN n END) AS n2023, SUM(CASE WHEN y = 2024 THEN n END) AS n2024 FROM monthly GROUP BY m ORDER BY m;
WITH monthly AS (SELECT YEAR(booked) AS y, MONTH(booked) AS m, COUNT(*) AS n FROM cards GROUP BY y, m) SELECT a.m, a.n AS n2023, b.n AS n2024, 100.0 * (b.n - a.n) / a.n AS growth FROM monthly a JOIN monthly b ON a.m = b.m WHERE a.y = 2023 AND b.y = 2024;
SELECT country, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS rk FROM cards WHERE status = 'approved' GROUP BY country HAVING COUNT(*) > 300 ORDER BY rk;
SELECT COALESCE(channel, 'unknown') AS channel, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM cards GROUP BY channel ORDER BY n DESC;
SELECT category, AVG(CASE WHEN fraud THEN 1.0 ELSE 0 END) AS fraud_rate FROM cards GROUP BY category ORDER BY fraud_rate DESC LIMIT 3;
SELECT category, COUNT(*) FILTER (WHERE status = 'declined') * 100.0 / COUNT(*) AS declined_pct, COUNT(*) FILTER (WHERE fraud)::DOUBLE / NULLIF(COUNT(*) FILTER (WHERE status = 'declined'), 0) AS per_decline FROM cards GROUP BY category;
SELECT * FROM (SELECT country, category, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY country ORDER BY COUNT(*) DESC) AS rn FROM cards GROUP BY country, category) x WHERE rn = 1;
SELECT EXTRACT(ISODOW FROM booked) AS wd, EXTRACT(HOUR FROM booked_at) AS h, COUNT(*) FROM cards GROUP BY wd, h;
SELECT CASE WHEN HOUR(booked_at) BETWEEN 0 AND 5 THEN 'night' WHEN HOUR(booked_at) < 12 THEN 'morning' WHEN HOUR(booked_at) < 18 THEN 'afternoon' ELSE 'evening' END AS daypart, COUNT(*) AS n, AVG(fee) AS fee FROM cards GROUP BY daypart ORDER BY MIN(HOUR(booked_at));
-- refused: it is a column of groups; select it by itself, or MAX of it
SELECT zone, SUM(n) AS n, SUM(n) * 1.0 / SUM(population) AS per_head FROM (SELECT co.zone, co.population, COUNT(*) AS n FROM cards JOIN countries co USING (country) GROUP BY co.zone, co.population) t GROUP BY zone;
SELECT card_type, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY amount) AS median, PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY amount) AS p95 FROM cards GROUP BY card_type;
SELECT SUM(amount * installments) / SUM(installments) AS weighted FROM cards;
SELECT card_type, category, SUM(fee) AS fees FROM cards GROUP BY GROUPING SETS ((card_type, category), (card_type), ()) ORDER BY card_type NULLS LAST, category NULLS LAST;
SELECT status, COUNT(*) AS n FROM cards GROUP BY status UNION ALL SELECT 'all', COUNT(*) FROM cards ORDER BY n DESC;
SELECT country, MAX(n) AS peak FROM (SELECT country, MONTH(booked) AS m, COUNT(*) AS n FROM cards GROUP BY 1, 2) t GROUP BY country;
SELECT booked, COUNT(*) AS n, AVG(COUNT(*)) OVER (ORDER BY booked ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS ma7 FROM cards WHERE booked >= '2024-12-01' GROUP BY booked ORDER BY booked;
SELECT country, COUNT(*) AS n, SUM(fee) AS fees, SUM(fee) / COUNT(*) AS avg_fee FROM cards GROUP BY 1 HAVING SUM(fee) / COUNT(*) > 2 ORDER BY 4 DESC;
SELECT COUNT(*) AS total, COUNT(channel) AS known, COUNT(*) - COUNT(channel) AS missing, 1.0 - COUNT(channel) / COUNT(*) AS missing_share FROM cards;
SELECT country, fraud, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY country) AS share FROM cards GROUP BY country, fraud ORDER BY country, fraud;
SELECT DISTINCT country, COUNT(*) AS n FROM cards GROUP BY country;
SELECT CASE WHEN amount >= 100 THEN '100+' WHEN amount >= 50 THEN '50-100' WHEN amount >= 20 THEN '20-50' ELSE '<20' END AS bucket, COUNT(*) AS n, SUM(fee) AS fees FROM cards GROUP BY bucket ORDER BY MIN(amount);
-- dialect: tsql
SELECT TOP 5 category, COUNT(*) AS n FROM dbo.cards WITH (NOLOCK) WHERE booked >= DATEADD(day, -30, '2024-12-31') GROUP BY category ORDER BY n DESC;
-- dialect: tsql
SELECT FORMAT(booked, 'yyyy-MM') AS ym, SUM(IIF(status = 'declined', 1, 0)) AS declined, CAST(SUM(IIF(status = 'declined', 1, 0)) AS FLOAT) / COUNT(*) AS rate FROM dbo.cards GROUP BY FORMAT(booked, 'yyyy-MM') ORDER BY ym;
-- dialect: bigquery
SELECT FORMAT_DATE('%Y-%m', booked) AS ym, COUNT(*) AS n, COUNTIF(fraud) / COUNT(*) AS rate FROM `p.d.cards` GROUP BY 1 ORDER BY 1;
-- dialect: postgres
SELECT to_char(booked, 'YYYY-MM') AS ym, count(*) filter (where fraud) AS frauds, round(100.0 * count(*) filter (where fraud) / count(*), 2) AS pct FROM cards GROUP BY 1 ORDER BY 1;
-- dialect: postgres
SELECT date_trunc('hour', booked_at) AS hr, count(*) AS n FROM cards WHERE booked_at >= timestamp '2024-05-10' AND booked_at < timestamp '2024-05-11' GROUP BY 1 ORDER BY 1;
-- dialect: spark
SELECT country, sum(if(fraud, 1, 0)) AS frauds, count_if(status = 'declined') AS declined FROM cards GROUP BY country ORDER BY frauds DESC;
-- dialect: redshift
SELECT LEFT(category, 3) AS c, NVL(channel, 'none') AS channel, COUNT(*) AS n FROM public.cards GROUP BY 1, 2 ORDER BY 3 DESC;
