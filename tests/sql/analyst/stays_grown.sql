-- Statements over the stays that were written while the compiler grew, and are not counted.

SELECT ward, AVG(discharged - admitted) AS days, STDDEV(discharged - admitted) AS sd FROM stays GROUP BY ward;
SELECT SUM(DATE_DIFF('day', admitted, discharged)) AS days, COUNT(discharged - admitted) AS n, AVG(age * los) FROM stays WHERE sex = 'F';
SELECT ward, SUM(los * (CASE WHEN severity > 2 THEN 2 ELSE 1 END)) AS w FROM stays GROUP BY ward;
