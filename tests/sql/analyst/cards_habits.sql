-- Statements over transactions of payment cards, as BI tools, dbt and analysts of several databases write them.

-- dialect: bigquery
-- duckdb: SELECT category, COUNT(*) AS n, COUNT_IF(fraud) AS frauds, AVG(CASE WHEN fraud THEN 1 ELSE 0 END) AS rate FROM cards WHERE booked BETWEEN '2024-01-01' AND '2024-06-30' GROUP BY category;
SELECT category, COUNT(*) AS n, COUNTIF(fraud) AS frauds, AVG(IF(fraud, 1, 0)) AS rate FROM `bank.prod.cards` WHERE booked BETWEEN DATE '2024-01-01' AND DATE '2024-06-30' GROUP BY category;
-- dialect: bigquery
-- duckdb: SELECT CAST(DATE_TRUNC('quarter', booked) AS DATE) AS quarter, SUM(fee) AS fees FROM cards GROUP BY 1 ORDER BY 1;
SELECT DATE_TRUNC(booked, QUARTER) AS quarter, SUM(fee) AS fees FROM cards GROUP BY quarter ORDER BY quarter;
-- dialect: bigquery
-- duckdb: SELECT EXTRACT(HOUR FROM booked_at) AS h, COUNT(*) AS n FROM cards GROUP BY 1 ORDER BY 1;
SELECT EXTRACT(HOUR FROM booked_at) AS h, COUNT(*) AS n FROM cards GROUP BY h ORDER BY h;
-- dialect: bigquery
-- duckdb: SELECT ISODOW(booked) % 7 + 1 AS d, COUNT(*) AS n FROM cards GROUP BY 1 ORDER BY 1;
SELECT EXTRACT(DAYOFWEEK FROM booked) AS d, COUNT(*) AS n FROM cards GROUP BY d ORDER BY d;
-- dialect: snowflake
-- duckdb: SELECT country, category, COUNT(*) AS n FROM cards GROUP BY 1, 2 QUALIFY ROW_NUMBER() OVER (PARTITION BY country ORDER BY COUNT(*) DESC) <= 2;
SELECT country, category, COUNT(*) AS n FROM bank.public.cards GROUP BY ALL QUALIFY ROW_NUMBER() OVER (PARTITION BY country ORDER BY n DESC) <= 2;
-- dialect: snowflake
-- duckdb: SELECT country, SUM(CASE WHEN channel IS NULL THEN 1 ELSE 0 END) AS missing, COUNT(*) AS n FROM cards GROUP BY country;
SELECT country, SUM(NVL2(channel, 0, 1)) AS missing, COUNT(*) AS n FROM cards GROUP BY country;
-- dialect: snowflake
-- duckdb: SELECT country, COUNT(*) FILTER (WHERE channel = 'web') AS web, COUNT(*) FILTER (WHERE channel = 'chip') AS chip FROM cards GROUP BY country;
SELECT * FROM (SELECT country, channel FROM cards) PIVOT (COUNT(channel) FOR channel IN ('web', 'chip')) AS p (country, web, chip);
-- dialect: snowflake
-- duckdb: SELECT country, 1.0 * COUNT_IF(status = 'declined') / COUNT(*) AS declined FROM cards GROUP BY country;
SELECT country, DIV0NULL(COUNT_IF(status = 'declined'), COUNT(*)) AS declined FROM cards GROUP BY country;
-- dialect: tsql
-- duckdb: SELECT country, SUM(CASE WHEN fraud THEN 1 ELSE 0 END) AS frauds, 100.0 * SUM(CASE WHEN fraud THEN 1 ELSE 0 END) / COUNT(*) AS pct FROM cards GROUP BY country HAVING COUNT(*) > 100 ORDER BY pct DESC;
SELECT country, SUM(CASE WHEN fraud = 1 THEN 1 ELSE 0 END) AS frauds, 100.0 * SUM(CASE WHEN fraud = 1 THEN 1 ELSE 0 END) / COUNT(*) AS pct FROM [bank].[dbo].[cards] WITH (NOLOCK) GROUP BY country HAVING COUNT(*) > 100 ORDER BY pct DESC;
-- dialect: tsql
-- duckdb: SELECT YEAR(booked) AS y, MONTH(booked) AS m, COUNT(*) AS n FROM cards WHERE booked >= '2024-01-01' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT DATEPART(year, booked) AS y, DATEPART(month, booked) AS m, COUNT(*) AS n FROM cards WHERE booked >= CAST('2024-01-01' AS date) GROUP BY DATEPART(year, booked), DATEPART(month, booked) ORDER BY y, m;
-- dialect: tsql
-- duckdb: SELECT LAST_DAY(booked) AS month_end, COUNT(*) AS n FROM cards GROUP BY 1;
SELECT EOMONTH(booked) AS month_end, COUNT(*) AS n FROM cards GROUP BY EOMONTH(booked);
-- dialect: mysql
-- duckdb: SELECT YEAR(booked) AS y, QUARTER(booked) AS q, SUM(fee) AS fees, AVG(fee) AS mean FROM cards GROUP BY 1, 2;
SELECT YEAR(booked) AS y, QUARTER(booked) AS q, SUM(fee) AS fees, AVG(fee) AS mean FROM cards GROUP BY YEAR(booked), QUARTER(booked);
-- dialect: mysql
-- duckdb: SELECT COALESCE(channel, 'none') AS channel, SUM(fraud = TRUE) / COUNT(*) AS rate FROM cards GROUP BY 1;
SELECT IFNULL(channel, 'none') AS channel, SUM(fraud = TRUE) / COUNT(*) AS rate FROM cards GROUP BY channel;
-- dialect: postgres
-- duckdb: SELECT STRFTIME(booked, '%Y-%m') AS month, COUNT(*) AS n FROM cards WHERE booked >= DATE '2024-06-01' - INTERVAL '3 months' AND booked < DATE '2024-06-01' GROUP BY 1 ORDER BY 1;
SELECT to_char(booked, 'YYYY-MM') AS month, count(*) AS n FROM cards WHERE booked >= date '2024-06-01' - interval '3 months' AND booked < date '2024-06-01' GROUP BY 1 ORDER BY 1;
-- dialect: postgres
SELECT country, percentile_cont(0.5) WITHIN GROUP (ORDER BY installments) AS median, percentile_disc(0.9) WITHIN GROUP (ORDER BY installments) AS p90 FROM cards GROUP BY country;
-- dialect: postgres
SELECT country, count(*)::numeric / sum(count(*)) OVER () AS share, rank() OVER (ORDER BY count(*) DESC) AS place FROM cards GROUP BY country ORDER BY place;
-- dialect: postgres
SELECT c.country, count(*) AS n FROM cards c WHERE c.category = ANY (ARRAY['fuel', 'travel']) AND c.channel IS DISTINCT FROM 'web' GROUP BY c.country;
SELECT country, COUNT(*) AS n FROM cards c WHERE EXISTS (SELECT * FROM sectors s WHERE s.category = c.category AND s.sector = 'leisure') GROUP BY country;
SELECT country, COUNT(*) AS n FROM cards WHERE category NOT IN (SELECT category FROM sectors) GROUP BY country;
SELECT co.zone, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM cards c LEFT JOIN countries co ON co.country = c.country LEFT JOIN sectors s ON s.category = c.category WHERE s.sector IS NULL GROUP BY co.zone;
WITH monthly AS (SELECT DATE_TRUNC('month', booked) AS month, country, COUNT(*) AS n FROM cards GROUP BY 1, 2), ranked AS (SELECT *, RANK() OVER (PARTITION BY month ORDER BY n DESC) AS r FROM monthly) SELECT month, country, n FROM ranked WHERE r = 1 ORDER BY month;
WITH y AS (SELECT YEAR(booked) AS y, category, COUNT(*) AS n FROM cards GROUP BY 1, 2) SELECT category, MAX(CASE WHEN y = 2023 THEN n END) AS n_2023, MAX(CASE WHEN y = 2024 THEN n END) AS n_2024 FROM y GROUP BY category;
WITH y AS (SELECT YEAR(booked) AS y, category, COUNT(*) AS n FROM cards GROUP BY 1, 2) SELECT category, SUM(n) FILTER (WHERE y = 2024) - SUM(n) FILTER (WHERE y = 2023) AS change, 100.0 * (SUM(n) FILTER (WHERE y = 2024) - SUM(n) FILTER (WHERE y = 2023)) / SUM(n) FILTER (WHERE y = 2023) AS pct FROM y GROUP BY category ORDER BY pct DESC;
WITH base AS (SELECT *, CASE WHEN amount < 20 THEN 'small' WHEN amount < 100 THEN 'medium' ELSE 'large' END AS size FROM cards) SELECT size, COUNT(*) AS n, SUM(CASE WHEN fraud THEN 1 END) AS frauds FROM base GROUP BY size ORDER BY CASE size WHEN 'small' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END;
SELECT country, COUNT(*) AS n, COUNT(*) FILTER (WHERE amount >= 100) * 1.0 / NULLIF(COUNT(*) FILTER (WHERE amount < 100), 0) AS large_to_small FROM cards GROUP BY country;
SELECT country, STDDEV(fee) / NULLIF(AVG(fee), 0) AS variation FROM cards GROUP BY country;
SELECT CORR(fee, installments) AS r, REGR_SLOPE(fee, installments) AS slope, COUNT(*) AS n FROM cards WHERE status = 'approved';
SELECT booked, COUNT(*) AS n FROM cards WHERE booked >= '2024-12-01' GROUP BY booked ORDER BY booked;
SELECT EXTRACT(ISODOW FROM booked_at) AS d, EXTRACT(HOUR FROM booked_at) AS h, COUNT(*) AS n FROM cards GROUP BY 1, 2 ORDER BY 1, 2;
SELECT CASE WHEN EXTRACT(HOUR FROM booked_at) BETWEEN 6 AND 11 THEN 'morning' WHEN EXTRACT(HOUR FROM booked_at) BETWEEN 12 AND 17 THEN 'afternoon' ELSE 'night' END AS part, SUM(CASE WHEN fraud THEN 1 ELSE 0 END) * 1.0 / COUNT(*) AS rate FROM cards GROUP BY 1;
SELECT country, COUNT(*) AS n FROM cards WHERE amount >= 10 AND amount < 200 AND NOT (category = 'fuel' OR channel = 'web') GROUP BY country;
