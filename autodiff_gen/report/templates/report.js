"use strict";
// Shows, hides and highlights what the page already contains; without it the page is complete, for the first function.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const format = (n) => Number(n).toLocaleString("en");

  // Functions

  const tabs = all('[role="tab"]');
  const show = (name) => {
    for (const tab of tabs) {
      const chosen = tab.getAttribute("aria-controls") === name;
      tab.setAttribute("aria-selected", chosen);
      tab.tabIndex = chosen ? 0 : -1;
    }
    for (const panel of all(".entry")) panel.hidden = panel.id !== name;
  };
  tabs.forEach((tab, k) => {
    tab.addEventListener("click", () => show(tab.getAttribute("aria-controls")));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: k + 1, ArrowLeft: k - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  });

  // Moves the only element of a group that Tab reaches.
  const rove = (group, to) => {
    for (const element of group) element.tabIndex = element === to ? 0 : -1;
    to.focus({ preventScroll: true });
  };
  const into = (box, element, end = element) => {
    const top = element.offsetTop - box.offsetTop * (element.offsetParent !== box);
    const bottom = end.offsetTop + end.offsetHeight - box.offsetTop * (end.offsetParent !== box);
    const header = 32;
    if (top < box.scrollTop + header || bottom > box.scrollTop + box.clientHeight) {
      box.scrollTop = top - Math.max(header, (box.clientHeight - (bottom - top)) / 3);
    }
  };

  for (const entry of all(".entry")) {
    const steps = all(".step", entry);
    const lines = all(".line[data-step]", entry);
    const buffers = all(".buffer", entry);
    const byIndex = new Map(buffers.map((b) => [b.dataset.key, b]));
    const byNumber = new Map(steps.map((s) => [s.dataset.step, s]));
    const detail = entry.querySelector(".detail");
    const cursor = entry.querySelector(".cursor");
    const svg = entry.querySelector(".map svg");
    const layers = all(".layer-of-net", entry);

    // A layer: its buffers and its steps in the map

    const unpick = () => {
      for (const b of buffers) b.classList.remove("reads", "writes", "chosen", "of-layer");
      for (const run of all(".band .layer", entry)) run.classList.remove("chosen");
      for (const node of layers) node.setAttribute("aria-pressed", false);
      if (svg) svg.classList.remove("picked");
      if (svg) cursor.setAttribute("visibility", "hidden");
    };
    const has = (node, element) => node.dataset.layers.split(" ").includes(element.dataset.layer);
    const press = (element) => {
      for (const node of layers) node.setAttribute("aria-pressed", has(node, element));
      const pressed = layers.find((node) => has(node, element));
      if (pressed) reveal(pressed);
    };
    const reveal = (node) => {
      const box = entry.querySelector(".net-scroll");
      const [outer, inner] = [box.getBoundingClientRect(), node.getBoundingClientRect()];
      if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - (outer.height - inner.height) / 2;
      if (inner.left < outer.left || inner.right > outer.right) box.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
    };
    const highlight = (node) => {
      const was = node.getAttribute("aria-pressed") === "true" && entry.querySelector(".of-layer, .layer.chosen");
      unpick();
      if (was) return;
      for (const step of steps) step.setAttribute("aria-selected", false);
      for (const line of lines) line.classList.remove("chosen");
      const mine = (element) => has(node, element);
      for (const other of layers) other.setAttribute("aria-pressed", other.dataset.layers === node.dataset.layers);
      svg.classList.add("picked");
      for (const b of buffers.filter(mine)) b.classList.add("of-layer");
      for (const run of all(".band .layer", entry).filter(mine)) run.classList.add("chosen");
    };
    layers.forEach((node, k) => {
      node.addEventListener("click", () => {
        rove(layers, node);
        highlight(node);
      });
      node.addEventListener("keydown", (event) => {
        const last = layers.length - 1;
        const to = { ArrowDown: Math.min(k + 1, last), ArrowUp: Math.max(k - 1, 0), Home: 0, End: last }[event.key];
        if (event.key === "Enter" || event.key === " ") highlight(node);
        else if (event.key === "Escape") unpick();
        else if (to !== undefined) {
          rove(layers, layers[to]);
          reveal(layers[to]);
        } else return;
        event.preventDefault();
      });
    });

    // A step: its C, its column and its buffers

    const select = (step) => {
      for (const s of steps) s.setAttribute("aria-selected", s === step);
      const mine = lines.filter((line) => line.dataset.step === step.dataset.step);
      for (const line of lines) line.classList.toggle("chosen", mine.includes(line));
      into(step.parentElement, step);
      if (mine.length) into(entry.querySelector(".code"), mine[0], mine[mine.length - 1]);
      unpick();
      press(step);
      if (svg) {
        svg.classList.add("picked");
        cursor.setAttribute("visibility", "visible");
        cursor.setAttribute("x", step.dataset.column);
        for (const how of ["reads", "writes"]) {
          for (const k of step.dataset[how].split(" ").filter(Boolean)) byIndex.get(k).classList.add(how);
        }
      }
    };
    steps.forEach((step, k) => {
      const choose = (to) => {
        rove(steps, to);
        select(to);
      };
      step.addEventListener("click", () => choose(step));
      step.addEventListener("keydown", (event) => {
        const last = steps.length - 1;
        const to = { ArrowDown: Math.min(k + 1, last), ArrowUp: Math.max(k - 1, 0), Home: 0, End: last, Enter: k, " ": k }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        choose(steps[to]);
      });
    });
    for (const line of lines) {
      line.addEventListener("click", () => {
        if (!String(getSelection())) select(byNumber.get(line.dataset.step));
      });
    }

    // A buffer: what it is

    const tell = (buffer) => {
      const { name, type, layer, use, bytes, offset, pool, steps: life, shares } = buffer.dataset;
      const title = document.createElement("code");
      title.textContent = name;
      const list = document.createElement("dl");
      const place = `${format(offset)} in the ${pool} arena`;
      const rows = { type, layer, use, bytes: format(bytes), steps: life, offset: place, "in place of or for": shares };
      for (const [term, text] of Object.entries(rows)) {
        if (!text) continue;
        const row = document.createElement("div");
        row.append(document.createElement("dt"), document.createElement("dd"));
        row.firstChild.textContent = term;
        row.lastChild.textContent = text;
        list.append(row);
      }
      detail.replaceChildren(title, list);
    };
    const center = (b) => [Number(b.getAttribute("x")) + b.getAttribute("width") / 2, Number(b.getAttribute("y")) + b.getAttribute("height") / 2];
    const neighbour = (from, axis, sign) => {
      const [width, height] = [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height];
      const at = center(from);
      let best = null;
      let least = Infinity;
      for (const b of buffers) {
        const to = center(b);
        const moved = [(to[0] - at[0]) / width, (to[1] - at[1]) / height];
        const ahead = sign * moved[axis];
        const aside = Math.abs(moved[1 - axis]);
        if (b === from || ahead < 0 || (ahead === 0 && aside === 0) || aside > 4 * ahead) continue;
        if (ahead + 2 * aside < least) [best, least] = [b, ahead + 2 * aside];
      }
      return best;
    };
    for (const buffer of buffers) {
      const choose = () => {
        select(byNumber.get(buffer.dataset.step));
        buffer.classList.add("chosen");
      };
      buffer.addEventListener("mouseenter", () => tell(buffer));
      buffer.addEventListener("focus", () => tell(buffer));
      buffer.addEventListener("click", () => {
        rove(buffers, buffer);
        choose();
      });
      buffer.addEventListener("keydown", (event) => {
        const to = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, -1], ArrowDown: [1, 1] }[event.key];
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          choose();
        } else if (to) {
          event.preventDefault();
          const next = neighbour(buffer, ...to);
          if (next) rove(buffers, next);
        } else if (event.key === "Escape") {
          unpick();
        }
      });
    }
    entry.select = (number) => byNumber.has(number) && select(byNumber.get(number));
  }

  // A step in the address: #train_step-7

  const follow = () => {
    const step = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!step || !step.classList.contains("step")) return;
    const entry = step.closest(".entry");
    show(entry.id);
    entry.select(step.dataset.step);
  };
  addEventListener("hashchange", follow);
  follow();
})();
