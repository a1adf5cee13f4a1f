// The few things that every part of the page needs: elements, requests, delays.

export const $ = (id) => document.getElementById(id);

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// What the server has rendered, and escaped.
export function put(element, html) {
  if (element.rendered === html) return;
  element.rendered = html;
  element.innerHTML = html;
}

export function later(milliseconds, action) {
  let waiting = null;
  return (...given) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => action(...given), milliseconds);
  };
}

// Runs an action again if it was asked for while it ran: the newest question wins. Whoever asks
// waits until it was answered.
export function newest(action) {
  let running = null, again = false;
  const run = async () => {
    try {
      while (again) { again = false; await action(); }
    } finally { running = null; }
  };
  return () => {
    again = true;
    running ??= run();
    return running;
  };
}

export class Refused extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

const KEY = "lrm-key";
export const key = {
  get: () => localStorage.getItem(KEY) || "",
  set: (value) => localStorage.setItem(KEY, value),
};

export async function ask(action, params = {}) {
  const headers = { "Content-Type": "application/json", "X-Lrm-Key": key.get() };
  let answer;
  try {
    answer = await fetch(`/api/${action}`, { method: "POST", headers, body: JSON.stringify(params) });
  } catch {
    throw new Refused("The workbench does not answer. Is lrm workbench still running?", 0);
  }
  const values = await answer.json();
  if (!answer.ok) throw new Refused(values.error, answer.status);
  return values;
}

export function command(element, text) {
  element.hidden = !text;
  if (!text || element.dataset.text === text) return;
  element.dataset.text = text;
  const button = h("button", { type: "button", class: "quiet", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Command copied.");
    } catch { say("The browser does not let the page copy; select the command instead."); }
  } }, "Copy");
  button.setAttribute("aria-label", `Copy the command ${text}`);
  element.replaceChildren(h("span", { class: "prompt", "aria-hidden": "true" }, "$ "),
    h("code", {}, ...text.split(" ").flatMap((word) => [h("span", {}, word), " "])), button);
}

// Options of a select by value; what is chosen stays so where it can.
export function options(select, pairs, chosen = select.value) {
  const known = JSON.stringify(pairs);
  if (select.known !== known) {
    select.known = known;
    select.replaceChildren(...pairs.map(([value, name]) => h("option", { value }, name)));
  }
  if (pairs.some(([value]) => value === chosen)) select.value = chosen;
}

export const say = (sentence) => { $("said").textContent = sentence; };

export function problem(element, sentence) {
  element.textContent = sentence || "";
  element.hidden = !sentence;
}

export const sentence = (reason) => {
  if (!(reason instanceof Refused)) console.error(reason);
  const text = reason.message || "Something went wrong.";
  const isName = /^\S*[._/]/.test(text); // questions.sql is no Questions.sql
  return isName ? text : text.charAt(0).toUpperCase() + text.slice(1);
};

export const shown = (value) => new Intl.NumberFormat("en", { maximumSignificantDigits: 4 }).format(value);
export const count = (value) => new Intl.NumberFormat("en").format(value);
export const many = (value, one, more) => `${count(value)} ${value === 1 ? one : more}`;
