
-- Conditions on two attributes together.
SELECT COUNT(*) AS longer_than_old FROM admissions WHERE los > age;
SELECT department, COUNT(*) AS older FROM admissions WHERE age > los GROUP BY department;
SELECT sex, COUNT(*) AS over_eighty FROM admissions WHERE age + los > 80 GROUP BY sex;
