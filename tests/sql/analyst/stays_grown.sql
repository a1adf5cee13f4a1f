-- Statements over the stays that were written while the compiler grew, and are not counted.

SELECT ward, AVG(discharged - admitted) AS days, STDDEV(discharged - admitted) AS sd FROM stays GROUP BY ward;
SELECT SUM(DATE_DIFF('day', admitted, discharged)) AS days, COUNT(discharged - admitted) AS n, AVG(age * los) FROM stays WHERE sex = 'F';
SELECT ward, SUM(los * (CASE WHEN severity > 2 THEN 2 ELSE 1 END)) AS w FROM stays GROUP BY ward;
WITH t AS (SELECT insurance, COUNT(*) AS n FROM stays GROUP BY 1) SELECT insurance, n / SUM(n) OVER () AS share FROM t WHERE insurance <> 'public';
WITH a AS (SELECT insurance, COUNT(*) AS n FROM stays GROUP BY 1), b AS (SELECT insurance, COUNT(*) AS m FROM stays WHERE readmitted GROUP BY 1)
  SELECT a.insurance, a.n, b.m FROM a LEFT JOIN b USING (insurance);
WITH a AS (SELECT severity, COUNT(*) AS n FROM stays GROUP BY 1), b AS (SELECT severity, AVG(los) AS days FROM stays GROUP BY 1)
  SELECT a.severity, a.n, b.days FROM a JOIN b ON a.severity = b.severity;
SELECT TRUNC((severity - 2) / 2) AS step, COUNT(*) AS n FROM stays GROUP BY step;
SELECT severity, los % (2) AS odd, COUNT(*) AS n FROM stays WHERE severity <> ALL (ARRAY[1, 2]) GROUP BY severity, los % (2) ORDER BY (3) DESC LIMIT 3;
SELECT CAST(cost / 1000 AS INT) > 1 AS dear, COUNT(*) AS n FROM stays WHERE cost >= 2000 OR cost < 1000 GROUP BY dear;
SELECT severity // 2 AS s, sex, SUM(COUNT(*)) OVER (PARTITION BY sex ORDER BY severity // 2 DESC NULLS FIRST) AS r FROM stays GROUP BY 1, 2;
SELECT insurance, UPPER(insurance) AS u, SUM(COUNT(*)) OVER (ORDER BY insurance DESC) AS r FROM stays GROUP BY insurance;
SELECT COALESCE(insurance, 'none') AS insurance, COUNT(*) AS n FROM stays GROUP BY insurance ORDER BY insurance;
-- refused: two groups of an expression have the same label
SELECT LENGTH(insurance) > 1 AS insurance, COUNT(*) AS n FROM stays GROUP BY insurance;
-- refused: EXCLUDE is not supported
SELECT sex, SUM(COUNT(*)) OVER (ORDER BY sex ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS r FROM stays GROUP BY sex;
SELECT ward, SUM(GREATEST(cost, 1000)) AS a, AVG(LEAST(GREATEST(1000, cost), 50000)) AS b, COUNT(GREATEST(cost, 1000)) AS n FROM stays GROUP BY ward;
SELECT sex, AVG(COALESCE(cost, 0)) AS a, AVG(ABS(bmi - 25)) AS b, SUM(ABS(cost - 5000)) AS c, COUNT(ABS(cost)) AS n FROM stays GROUP BY sex;
SELECT AVG(CASE WHEN cost < 1000 THEN 0 WHEN cost < 5000 THEN cost WHEN cost >= 5000 THEN 5000 END) AS a, SUM(CASE WHEN sex = 'F' THEN cost WHEN bmi >= 25 THEN 2 * bmi ELSE -1 END) AS b FROM stays;
-- refused: cost >= 700 cuts through the cell [500, 1000) of 'cost'
SELECT SUM(GREATEST(cost, 700)) FROM stays;
