-- Statements over one table of people, a survey of patients: id, age, sex, state, education,
-- marital, smoker, children, income, height, weight, visits, admitted, insurance.
-- Written as analysts write, before it was tried which of them are compiled.

SELECT COUNT(*) FROM people;
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex;
SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC;
SELECT COUNT(*) FROM people WHERE age >= 65;
SELECT COUNT(*) FROM people WHERE age BETWEEN 18 AND 64 AND sex = 'F';
SELECT sex, COUNT(*) FROM people WHERE smoker GROUP BY sex;
SELECT COUNT(*) FROM people WHERE smoker = TRUE AND age < 30;
SELECT COUNT(*) FROM people WHERE NOT smoker;
SELECT COUNT(*) FROM people WHERE smoker IS NULL;
SELECT education, COUNT(*) FROM people WHERE income >= 50000 GROUP BY education;
SELECT CASE WHEN age < 18 THEN '0-17' WHEN age < 30 THEN '18-29' WHEN age < 45 THEN '30-44' WHEN age < 65 THEN '45-64' ELSE '65+' END AS age_group, COUNT(*) AS n FROM people GROUP BY age_group ORDER BY age_group;
SELECT CASE WHEN age < 18 THEN 'child' ELSE 'adult' END AS grp, sex, COUNT(*) AS n FROM people GROUP BY grp, sex;
SELECT age / 10 AS decade, COUNT(*) FROM people GROUP BY decade;
SELECT age // 10 * 10 AS decade, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 1;
SELECT FLOOR(age / 5) * 5 AS five_years, sex, COUNT(*) FROM people GROUP BY 1, 2;
SELECT state, AVG(age) AS mean_age FROM people GROUP BY state;
SELECT AVG(income) AS mean_income FROM people;
SELECT education, AVG(income) AS mean_income, COUNT(*) AS n FROM people GROUP BY education ORDER BY mean_income DESC;
SELECT sex, AVG(CASE WHEN smoker THEN 1.0 ELSE 0 END) AS smoking_rate FROM people GROUP BY sex;
SELECT state, SUM(CASE WHEN smoker THEN 1 ELSE 0 END) * 1.0 / COUNT(*) AS rate FROM people GROUP BY state ORDER BY rate DESC LIMIT 3;
SELECT MEDIAN(age) FROM people;
SELECT MEDIAN(income) FROM people WHERE sex = 'M';
SELECT state, QUANTILE_CONT(income, 0.25) AS q1, QUANTILE_CONT(income, 0.75) AS q3 FROM people GROUP BY state;
SELECT education, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income) AS median_income FROM people GROUP BY education;
SELECT age, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY age) AS up_to FROM people GROUP BY age ORDER BY age;
SELECT marital, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM people GROUP BY marital;
SELECT SUM(children) AS children FROM people;
SELECT state, SUM(children) AS children, COUNT(*) AS people FROM people GROUP BY state;
SELECT AVG(children) FROM people WHERE marital = 'married';
SELECT CASE WHEN children = 0 THEN 'none' WHEN children <= 2 THEN 'one or two' ELSE 'three or more' END AS kids, COUNT(*) FROM people GROUP BY kids;
SELECT COUNT(*) FROM people WHERE children > 0 AND marital <> 'married';
SELECT LEAST(children, 3) AS kids, COUNT(*) AS n FROM people GROUP BY kids ORDER BY kids;
SELECT COUNT(*) FROM people WHERE income < 20000 OR insurance IS NULL;
SELECT COALESCE(insurance, 'none') AS insurance, COUNT(*) FROM people GROUP BY 1;
SELECT insurance, COUNT(*) FROM people GROUP BY insurance HAVING COUNT(*) > 100;
SELECT insurance IS NULL AS uninsured, COUNT(*) AS n, COUNT(*) FILTER (WHERE visits > 2) AS frequent FROM people GROUP BY uninsured;
SELECT SUM(visits) FROM people;
SELECT sex, SUM(visits) / COUNT(*) AS visits_per_person FROM people GROUP BY sex;
SELECT visits, COUNT(*) FROM people GROUP BY visits ORDER BY visits DESC;
SELECT COUNT(*) FROM people WHERE visits >= 2 * children;
SELECT COUNT(*) FROM people WHERE visits > children;
SELECT COUNT(*) FROM people WHERE state IN ('NY', 'NJ', 'CT');
SELECT state IN ('NY', 'NJ', 'CT') AS tri_state, sex, COUNT(*) FROM people GROUP BY ALL ORDER BY 1, 2;
SELECT COUNT(*) FROM people WHERE state LIKE 'N_';
SELECT LOWER(state) AS st, COUNT(*) FROM people GROUP BY st;
SELECT COUNT(*) FROM people WHERE UPPER(education) = 'COLLEGE';
SELECT YEAR(admitted) AS y, COUNT(*) FROM people GROUP BY y ORDER BY y;
SELECT DATE_TRUNC('quarter', admitted) AS q, COUNT(*) AS n FROM people GROUP BY q ORDER BY q;
SELECT EXTRACT(year FROM admitted) AS y, EXTRACT(month FROM admitted) AS m, COUNT(*) AS n FROM people GROUP BY y, m ORDER BY y, m;
SELECT COUNT(*) FROM people WHERE admitted >= DATE '2023-07-01';
SELECT COUNT(*) FROM people WHERE admitted < '2024-01-01' AND age >= 65;
SELECT COUNT(*) FROM people WHERE DATEDIFF('month', DATE '2023-01-01', admitted) < 6;
SELECT COUNT(*) FROM people WHERE admitted IS NOT NULL;
SELECT ISODOW(admitted) >= 6 AS weekend, COUNT(*) FROM people WHERE admitted IS NOT NULL GROUP BY weekend;
SELECT CASE WHEN income < 20000 THEN 'low' WHEN income < 60000 THEN 'middle' ELSE 'high' END AS bracket, sex, COUNT(*) AS n FROM people GROUP BY bracket, sex ORDER BY n DESC;
SELECT FLOOR(income / 20000) AS bracket, COUNT(*) FROM people WHERE income < 100000 GROUP BY bracket ORDER BY bracket;
SELECT COUNT(*) FROM people WHERE income / 12 >= 5000;
SELECT COUNT(*) FROM people WHERE income >= 1e5;
SELECT COUNT(*) FROM people WHERE height >= 180 AND sex = 'F';
-- refused: (weight / ((height / 100) * (height / 100))) > 30 is not constant on the cells of 'weight', which are intervals
SELECT COUNT(*) FROM people WHERE weight / ((height / 100) * (height / 100)) > 30;
SELECT height >= 170 AS tall, weight >= 80 AS heavy, COUNT(*) FROM people GROUP BY tall, heavy;
-- refused: ROUND(height / 10) is not constant on the cell [120, 140) of 'height', which is counted as one
SELECT ROUND(height / 10) AS dm, COUNT(*) FROM people GROUP BY dm;
SELECT region, COUNT(*) AS n FROM people JOIN regions USING (state) GROUP BY region ORDER BY n DESC;
SELECT r.region, p.sex, COUNT(*) AS n, AVG(p.age) AS mean_age FROM people AS p JOIN regions AS r ON p.state = r.state WHERE p.age >= 18 GROUP BY r.region, p.sex;
SELECT p.state, r.region, COUNT(*) AS n FROM people p INNER JOIN regions r ON p.state = r.state GROUP BY p.state, r.region;
WITH adults AS (SELECT * FROM people WHERE age >= 18) SELECT sex, COUNT(*) AS n, COUNT(*) FILTER (WHERE smoker) AS smokers FROM adults GROUP BY sex;
WITH grouped AS (SELECT sex, smoker, age >= 65 AS senior FROM people) SELECT senior, COUNT(*) AS n FROM grouped WHERE sex = 'F' GROUP BY senior;
SELECT s, COUNT(*) FROM (SELECT sex AS s, age FROM people WHERE age > 20) q WHERE age < 60 GROUP BY s;
SELECT COUNT(*) AS n FROM people WHERE sex = 'F' UNION ALL SELECT COUNT(*) FROM people WHERE sex = 'M';
SELECT sex, marital, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), (marital), ());
SELECT sex AS gender, state AS home_state, COUNT(*) AS n FROM people GROUP BY gender, home_state;
SELECT STDDEV_SAMP(age) FROM people;
-- refused: MIN() is not supported
SELECT MIN(age), MAX(age) FROM people;
-- refused: COUNT(DISTINCT …) is not supported
SELECT COUNT(DISTINCT state) FROM people;
SELECT COUNT(*) FILTER (WHERE sex = 'F') - COUNT(*) FILTER (WHERE sex = 'M') AS more_women FROM people;
SELECT smoker, COUNT(*) AS n FROM people WHERE age >= 18 GROUP BY smoker ORDER BY n DESC LIMIT 1;
SELECT education, sex, COUNT(*) AS n FROM people GROUP BY education, sex ORDER BY education, n DESC;
SELECT state, COUNT(*) FILTER (WHERE income >= 60000) * 100.0 / COUNT(income) AS pct_high FROM people GROUP BY state;
SELECT CAST(age AS VARCHAR) || ' years' AS label, COUNT(*) FROM people WHERE age IN (20, 21, 22) GROUP BY label;
SELECT age % 2 AS parity, COUNT(*) FROM people GROUP BY parity;
SELECT COUNT(*) FROM people WHERE age = '30';
-- refused: MODE() is not supported
SELECT MODE(state) FROM people;
