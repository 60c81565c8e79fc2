"use strict";

/** Makes an element with a class and a text. Texts are never read as markup. */
function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

/** The registers that a trace touches, by object, each with what it holds before the first step that touches it. */
function registersOf(steps) {
  const first = new Map();
  for (const { access } of steps) {
    if (access && !first.has(access.register)) first.set(access.register, access.before);
  }
  return first;
}

/** One counterexample. */
class Player {
  constructor(article) {
    this.article = article;
    const data = JSON.parse(article.querySelector(".data").textContent);
    this.steps = data.steps;
    this.mutex = data.mutex;
    this.colours = data.colours;
    this.program = data.program;
    this.timer = null;
    this.at = 0;
    const find = (selector) => article.querySelector(selector);
    this.slider = find("input[type=range]");
    this.output = find("output");
    this.card = find(".card");
    this.who = find(".who");
    this.memory = find(".memory");
    this.cursor = find(".cursor");
    this.lanes = find("svg.lanes");
    this.lanesScroll = find(".picture .scroll");
    this.play = find("[data-act=play]");
    this.listing = find(".tall");
    this.rows = [...article.querySelectorAll(".steps tbody tr")];
    this.names = [...article.querySelectorAll(".names li")];
    this.layOutMemory();
    this.listen();
    this.show(0);
  }

  layOutMemory() {
    this.cells = new Map();
    const boxes = new Map();
    const registers = registersOf(this.steps);
    for (const [register] of registers) {
      const dot = register.indexOf(".");
      const object = dot < 0 ? "shared" : register.slice(0, dot);
      if (!boxes.has(object)) {
        const box = make("div", "object");
        box.append(make("h4", "", object));
        boxes.set(object, box);
      }
      const row = make("div");
      row.append(make("span", "", dot < 0 ? register : register.slice(dot + 1)), make("b"));
      boxes.get(object).append(row);
      this.cells.set(register, row);
    }
    const shared = boxes.get("shared");
    const rest = [...boxes].filter(([name]) => name !== "shared").sort(([a], [b]) => (a < b ? -1 : 1));
    if (shared) this.memory.append(shared);
    this.memory.append(...rest.map(([, box]) => box));
    this.initial = registers;
  }

  listen() {
    const acts = {
      first: () => this.show(0),
      previous: () => this.show(this.at - 1),
      next: () => this.show(this.at + 1),
      last: () => this.show(this.steps.length - 1),
    };
    for (const button of this.article.querySelectorAll("[data-act]")) {
      const act = button.dataset.act;
      button.addEventListener("click", () => (act === "play" ? this.toggle() : (this.pause(), acts[act]())));
    }
    this.slider.addEventListener("input", () => {
      this.pause();
      this.show(Number(this.slider.value) - 1);
    });
    this.lanes.addEventListener("click", (event) => {
      const box = this.lanes.getBoundingClientRect();
      this.pause();
      this.show(Math.floor(((event.clientX - box.left) / box.width) * this.steps.length));
    });
    this.rows.forEach((row, i) => row.addEventListener("click", () => (this.pause(), this.show(i))));
    this.article.addEventListener("keydown", (event) => {
      // Sliders, buttons and summaries have keys of their own.
      if (event.altKey || event.ctrlKey || event.metaKey || event.target === this.slider) return;
      const keys = { ArrowLeft: "previous", ArrowRight: "next", Home: "first", End: "last" };
      if (event.key in keys) {
        this.pause();
        acts[keys[event.key]]();
      } else if (event.key === " " && !event.target.closest("button, summary")) {
        this.toggle();
      } else {
        return;
      }
      event.preventDefault();
    });
  }

  toggle() {
    if (this.timer) return this.pause();
    if (this.at === this.steps.length - 1) this.show(0);
    this.timer = setInterval(() => {
      this.show(this.at + 1);
      if (this.at === this.steps.length - 1) this.pause();
    }, 650);
    this.play.textContent = "❚❚ Pause";
    this.play.setAttribute("aria-label", "Pause");
    // A reader would be read every step over the last one.
    this.card.setAttribute("aria-live", "off");
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "▶\ufe0e Play";
    this.play.setAttribute("aria-label", "Play");
    this.card.setAttribute("aria-live", "polite");
  }

  colour(process, session) {
    return "c" + (this.mutex ? process : Math.max(session - 1, 0)) % this.colours;
  }

  show(i) {
    const count = this.steps.length;
    this.at = Math.min(Math.max(i, 0), count - 1);
    const step = this.steps[this.at];
    this.article.dataset.at = this.at + 1;
    this.slider.value = this.at + 1;
    this.slider.setAttribute("aria-valuetext", `step ${this.at + 1}: P${step.process} ${step.operation}`);
    this.output.textContent = `step ${this.at + 1} of ${count}`;
    this.cursor.setAttribute("x", `${(100 * this.at) / count}%`);
    this.names.forEach((name, p) => name.classList.toggle("moves", p === step.process));
    this.rows.forEach((row, k) => {
      if (k === this.at) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    });
    this.keepInView();
    this.showCard(step);
    this.showWho(step);
    this.showMemory(step);
  }

  /** Scrolls the boxes, never the page. */
  keepInView() {
    const box = this.lanesScroll;
    const x = (box.scrollWidth * (this.at + 0.5)) / this.steps.length;
    if (x < box.scrollLeft + 30 || x > box.scrollLeft + box.clientWidth - 30) box.scrollLeft = x - box.clientWidth / 2;
    const row = this.rows[this.at];
    if (row && this.listing.clientHeight) {
      const top = row.offsetTop - 40;
      const bottom = row.offsetTop + row.offsetHeight - this.listing.clientHeight;
      if (this.listing.scrollTop > top || this.listing.scrollTop < bottom) this.listing.scrollTop = top - 60;
    }
  }

  showCard(step) {
    const stage = step.stages[step.process] || { section: "", session: 0 };
    this.card.className = "card " + this.colour(step.process, stage.session);
    const by = make("div", "by");
    by.append(make("strong", "", `Process ${step.process}`));
    const line = step.paper_line ? `, paper line ${step.paper_line}` : "";
    by.append(`${line}${step.source ? `, ${step.source}` : ""}`);
    this.card.replaceChildren(by, make("p", "what", step.operation));
    const code = this.codeAround(step);
    if (code) this.card.append(code);
    if (this.at === this.steps.length - 1) {
      this.card.append(make("p", "alarm", "✗ " + this.article.querySelector(".because").textContent));
    }
  }

  /** The program around the line of a step, without the indentation that all of it has. */
  codeAround(step) {
    const [file, line] = (step.source || "").split(":");
    const excerpt = this.program[file];
    if (!excerpt) return null;
    const first = Math.max(Number(line) - 3, excerpt.from);
    const lines = excerpt.lines.slice(first - excerpt.from, Number(line) + 4 - excerpt.from);
    const indents = lines.filter((text) => text.trim()).map((text) => text.search(/\S/));
    const pre = make("pre");
    lines.forEach((text, k) => {
      const row = make("span", first + k === Number(line) ? "here" : "");
      row.append(make("i", "", String(first + k)), text.slice(Math.min(...indents)) || " ");
      pre.append(row);
    });
    return pre;
  }

  showWho(step) {
    this.who.replaceChildren(
      ...step.stages.map(({ section, session }, p) => {
        const resting = section === "remainder";
        const of = this.mutex || resting ? "" : ` · s${session}`;
        const chip = make("span", resting ? "" : `on ${section} ${this.colour(p, session)}`);
        chip.textContent = `P${p} ${resting ? "idle" : section}${of}`;
        return chip;
      }),
    );
  }

  showMemory(step) {
    const values = new Map(this.initial);
    for (const { access } of this.steps.slice(0, this.at + 1)) if (access) values.set(access.register, access.after);
    for (const [register, row] of this.cells) {
      const touched = step.access && step.access.register === register;
      const value = values.get(register);
      row.className = [touched && "touched", touched && step.access.writes && "written", value === "UNDEF" && "dead"]
        .filter(Boolean)
        .join(" ");
      const cell = row.lastChild;
      cell.replaceChildren();
      if (touched && step.access.writes && step.access.before !== step.access.after && step.access.before !== "UNDEF") {
        cell.append(make("span", "old", step.access.before));
      }
      cell.append(value === "UNDEF" ? "–" : value);
    }
  }
}

/** Values under the pointer, and lines set apart. */
function plots() {
  const tip = document.getElementById("tip");
  document.addEventListener("pointerover", (event) => {
    const text = event.target.dataset && event.target.dataset.tip;
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const box = event.target.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(box.left + 12, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(8, box.top - tip.offsetHeight - 8)}px`;
  });
  // The tip says it sooner and better than the browser would.
  for (const title of document.querySelectorAll("[data-tip] > title")) title.remove();
  const buttons = [...document.querySelectorAll(".series button")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      const chosen = buttons.filter((b) => b.getAttribute("aria-pressed") === "true").map((b) => b.dataset.series);
      for (const plot of document.querySelectorAll(".plots")) plot.classList.toggle("apart", chosen.length > 0);
      for (const line of document.querySelectorAll(".of")) {
        line.classList.toggle("chosen", chosen.includes(line.dataset.series));
      }
    });
  }
}

const players = [...document.querySelectorAll("article.trace")].map((article) => new Player(article));

/** Goes to the step that the address names, as in `#trace-0@12`. */
function follow() {
  const named = /^#trace-(\d+)@(\d+)$/.exec(location.hash);
  const player = named && players[Number(named[1])];
  if (!player) return;
  player.show(Number(named[2]) - 1);
  player.article.scrollIntoView();
}
addEventListener("hashchange", follow);
follow();
plots();
