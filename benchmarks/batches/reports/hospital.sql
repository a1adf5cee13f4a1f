-- How many, and when.
SELECT COUNT(*) AS admissions FROM admissions;
SELECT month, COUNT(*) AS by_month FROM admissions GROUP BY month ORDER BY month;
SELECT department, COUNT(*) AS by_department FROM admissions GROUP BY department;
SELECT department, month, COUNT(*) AS in_month FROM admissions GROUP BY department, month;
SELECT (month - 1) // 3 + 1 AS quarter, admission, COUNT(*) AS in_quarter FROM admissions GROUP BY quarter, admission;

-- Who.
SELECT age, sex, COUNT(*) AS patients FROM admissions GROUP BY age, sex;
SELECT department, sex, COUNT(*) AS by_sex FROM admissions GROUP BY department, sex;
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS age_group,
       department, COUNT(*) AS by_age_group
FROM admissions GROUP BY age_group, department;
SELECT insurance, COUNT(*) AS insured, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS insured_share
FROM admissions GROUP BY insurance;
SELECT department, AVG(age) AS mean_age FROM admissions GROUP BY department;
SELECT department, MEDIAN(age) AS median_age FROM admissions GROUP BY department;
SELECT age, COUNT(*) AS births FROM admissions WHERE department = 'maternity' AND age BETWEEN 15 AND 50 GROUP BY age;

-- How long.
SELECT AVG(los) AS mean_stay, MEDIAN(los) AS median_stay FROM admissions;
SELECT department, AVG(los) AS mean_stay_in, SUM(los) AS bed_days FROM admissions GROUP BY department;
SELECT department, MEDIAN(los) AS median_stay_in FROM admissions GROUP BY department;
SELECT department, admission, COUNT(*) FILTER (WHERE los >= 14) AS long_stays FROM admissions GROUP BY department, admission;
SELECT los, COUNT(*) AS stays FROM admissions GROUP BY los;
SELECT month, AVG(los) AS mean_stay_month FROM admissions WHERE admission = 'urgent' GROUP BY month;
SELECT age // 10 * 10 AS decade, AVG(los) AS mean_stay_age FROM admissions GROUP BY decade;

-- How it ended.
SELECT discharge, COUNT(*) AS ended FROM admissions GROUP BY discharge;
SELECT department, AVG(CASE WHEN discharge = 'died' THEN 1.0 ELSE 0.0 END) AS mortality FROM admissions GROUP BY department;
SELECT department, month, COUNT(*) FILTER (WHERE discharge = 'died') AS deaths FROM admissions GROUP BY department, month;
SELECT admission, discharge, COUNT(*) AS ways, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY admission) AS share_of_ways
FROM admissions GROUP BY admission, discharge;
SELECT insurance, department, 100.0 * COUNT(*) FILTER (WHERE admission = 'urgent') / COUNT(*) AS urgent_percent
FROM admissions GROUP BY insurance, department;
SELECT sex, age // 10 * 10 AS decade, 100.0 * COUNT(*) FILTER (WHERE discharge = 'died') / COUNT(*) AS died_percent
FROM admissions GROUP BY sex, decade;
