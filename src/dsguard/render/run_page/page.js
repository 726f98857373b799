"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const LEFT = 58, RIGHT = 8, TOP = 10, LANE = 12, AXIS = 20;
  const buckets = data.from.length;
  const view = { from: 0, to: buckets };
  let at = null;

  const undelta = (gaps) => { let sum = 0; return gaps.map((gap) => (sum += gap)); };
  const marks = {};

  const number = (value) => {
    if (value === null || value === undefined) return "unknown";
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en-US");
    const size = Math.abs(value);
    if (size >= 1e5 || size < 1e-3) return value.toExponential(3).replace(/\.?0*e\+?/, "e");
    return String(Number(value.toPrecision(4)));
  };
  const colours = new Map();
  const colour = (name) => {
    if (!colours.has(name)) colours.set(name, getComputedStyle(root).getPropertyValue("--" + name).trim());
    return colours.get(name);
  };

  /** The bucket that holds a step. */
  const bucketOf = (step) => {
    let low = 0, high = buckets - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (data.from[middle] <= step) low = middle; else high = middle - 1;
    }
    return low;
  };
  /** Where a step lies, in buckets: a step in the middle of a bucket lies in its middle. */
  const place = (step) => {
    const bucket = bucketOf(step);
    const size = data.to[bucket] - data.from[bucket] + 1;
    return bucket + Math.min(1, (step - data.from[bucket] + 0.5) / size);
  };

  for (const [name, mark] of Object.entries(data.marks)) {
    const at = undelta(mark.at);
    marks[name] = { ...mark, at, places: at.map(place) };
  }

  const ticks = (low, high, count) => {
    const rough = (high - low) / count || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
    const made = [];
    for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-6; t += step) {
      made.push(Math.abs(t) < step * 1e-6 ? 0 : Number(t.toPrecision(12)));
    }
    return made;
  };

  class Chart {
    constructor(section, told) {
      this.told = told;
      this.canvas = section.querySelector("canvas");
      this.read = section.querySelector(".read");
      this.canvas.addEventListener("pointerdown", (event) => this.press(event));
      this.canvas.addEventListener("pointermove", (event) => this.move(event));
      this.canvas.addEventListener("pointerup", (event) => this.release(event));
      this.canvas.addEventListener("pointercancel", () => { this.start = null; draw(); });
      this.canvas.addEventListener("pointerleave", () => { if (this.start == null) point(null); });
      this.canvas.addEventListener("dblclick", () => zoom(0, buckets));
      this.canvas.addEventListener("keydown", key);
    }

    get width() { return this.canvas.clientWidth - LEFT - RIGHT; }
    x(buckets) { return LEFT + ((buckets - view.from) / (view.to - view.from)) * this.width; }
    bucketAt(event) {
      const x = event.clientX - this.canvas.getBoundingClientRect().left - LEFT;
      const part = Math.max(0, Math.min(0.999999, x / this.width));
      return Math.floor(view.from + part * (view.to - view.from));
    }
    press(event) {
      if (event.button !== 0 || event.pointerType === "touch") return;
      this.start = this.bucketAt(event);
      this.canvas.setPointerCapture(event.pointerId);
    }
    move(event) { point(this.bucketAt(event)); }
    release(event) {
      const start = this.start, end = this.bucketAt(event);
      this.start = null;
      if (start != null && Math.abs(end - start) > 1) zoom(Math.min(start, end), Math.max(start, end) + 1);
      else point(end);
    }

    /** The lowest and highest value in view, with a little room. */
    range() {
      let low = Infinity, high = -Infinity, lowest = Infinity;
      const take = (values) => {
        for (let i = view.from; i < view.to; i++) {
          const value = values[i];
          if (value === null || value === undefined) continue;
          if (value < low) low = value;
          if (value > high) high = value;
          if (value > 0 && value < lowest) lowest = value;
        }
      };
      for (const series of this.told.series) {
        take(series.mean);
        if (series.low) { take(series.low); take(series.high); }
      }
      if (low > high) return null;
      this.log = Boolean(this.told.log) && low >= 0 && lowest < Infinity && high / lowest > 100;
      if (this.log) return [Math.log10(lowest) - 0.05, Math.log10(high) + 0.1];
      if (this.told.zero && low > 0) low = 0;
      const room = (high - low || Math.abs(high) || 1) * 0.08;
      return [low === 0 ? 0 : low - room, high + room];
    }

    draw() {
      const ratio = window.devicePixelRatio || 1, canvas = this.canvas;
      const width = canvas.clientWidth, height = canvas.clientHeight;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      const g = canvas.getContext("2d");
      g.scale(ratio, ratio);
      g.font = "11.5px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
      const bottom = height - AXIS - LANE;
      this.plot = { bottom, height };
      const range = this.range();
      const scale = (value) => (this.log ? Math.log10(Math.max(value, 1e-300)) : value);
      const y = (value) => bottom - ((scale(value) - range[0]) / (range[1] - range[0])) * (bottom - TOP);
      this.axis(g, bottom);
      if (range === null) return;
      g.fillStyle = colour("soft");
      g.textAlign = "right";
      g.textBaseline = "middle";
      const steps = this.log
        ? ticks(Math.ceil(range[0]), Math.floor(range[1]), 4).filter(Number.isInteger).map((p) => 10 ** p)
        : ticks(range[0], range[1], 4).filter((t) => !this.told.whole || Number.isInteger(t));
      for (const value of steps) {
        const at = Math.round(y(value)) + 0.5;
        if (at < TOP - 6 || at > bottom + 1) continue;
        g.strokeStyle = colour("grid");
        g.beginPath(); g.moveTo(LEFT, at); g.lineTo(LEFT + this.width, at); g.stroke();
        g.fillText(number(value), LEFT - 8, at);
      }
      g.save();
      g.beginPath(); g.rect(LEFT, 0, this.width, bottom + LANE); g.clip();
      for (const series of this.told.series) this.series(g, series, y);
      this.lane(g, bottom);
      this.lines(g, bottom);
      g.restore();
    }

    axis(g, bottom) {
      g.strokeStyle = colour("line");
      g.beginPath(); g.moveTo(LEFT, bottom + 0.5); g.lineTo(LEFT + this.width, bottom + 0.5); g.stroke();
      if (!buckets) return;
      const first = data.from[view.from], last = data.to[view.to - 1];
      g.fillStyle = colour("soft");
      g.textBaseline = "alphabetic";
      for (const step of ticks(first, last, Math.max(3, this.width / 100))) {
        if (!Number.isInteger(step) || step < first || step > last) continue;
        const x = this.x(place(step)), text = number(step), half = g.measureText(text).width / 2;
        g.textAlign = x + half > LEFT + this.width ? "right" : x - half < LEFT - 20 ? "left" : "center";
        g.fillText(text, x, bottom + LANE + AXIS - 6);
      }
    }

    series(g, series, y) {
      const wide = this.width / (view.to - view.from);
      const single = !series.low;
      if (series.bars && single && wide >= 3) {
        const gap = wide >= 6 ? Math.min(3, wide * 0.2) : 0.5;
        for (let i = view.from; i < view.to; i++) {
          const value = series.mean[i];
          if (value === null) continue;
          const off = series.against && series.against[i] !== null && value !== series.against[i];
          g.fillStyle = colour(off ? marks.off.colour : series.colour);
          g.globalAlpha = off ? 0.95 : 0.6;
          const top = y(value);
          g.fillRect(this.x(i) + gap / 2, top, Math.max(1, wide - gap), this.plot.bottom - top);
        }
        g.globalAlpha = 1;
        return;
      }
      if (series.low) {
        g.fillStyle = series.colour === "a" ? colour("band") : colour(series.colour);
        if (series.colour !== "a") g.globalAlpha = 0.18;
        for (const [from, to] of this.runs(series.mean)) {
          g.beginPath();
          for (let i = from; i < to; i++) { g.lineTo(this.x(i), y(series.high[i])); g.lineTo(this.x(i + 1), y(series.high[i])); }
          for (let i = to - 1; i >= from; i--) { g.lineTo(this.x(i + 1), y(series.low[i])); g.lineTo(this.x(i), y(series.low[i])); }
          g.closePath(); g.fill();
        }
        g.globalAlpha = 1;
      }
      // A bucket of many windows shows how far any of them is from what was expected.
      if (series.against && series.low) {
        g.fillStyle = colour(marks.off.colour);
        for (let i = view.from; i < view.to; i++) {
          const expected = series.against[i];
          if (series.low[i] === null || expected === null || (series.low[i] >= expected && series.high[i] <= expected)) continue;
          const top = y(Math.max(series.high[i], expected)), end = y(Math.min(series.low[i], expected));
          g.fillRect(this.x(i), top, Math.max(2, wide), end - top);
        }
      }
      g.strokeStyle = colour(series.colour);
      g.lineWidth = series.dashed ? 1.2 : 1.6;
      g.setLineDash(series.dashed ? [5, 4] : []);
      g.lineJoin = "round";
      for (const [from, to] of this.runs(series.mean)) {
        g.beginPath();
        for (let i = from; i < to; i++) {
          if (series.stepped || to - from === 1) { g.lineTo(this.x(i), y(series.mean[i])); g.lineTo(this.x(i + 1), y(series.mean[i])); }
          else g.lineTo(this.x(i + 0.5), y(series.mean[i]));
        }
        g.stroke();
      }
      g.setLineDash([]);
      g.lineWidth = 1;
    }

    /** Stretches of known values in view, with one bucket more on each side. */
    runs(values) {
      const made = [], end = Math.min(buckets, view.to + 1);
      let from = null;
      for (let i = Math.max(0, view.from - 1); i <= end; i++) {
        const known = i < end && values[i] !== null && values[i] !== undefined;
        if (known && from === null) from = i;
        if (!known && from !== null) { made.push([from, i]); from = null; }
      }
      return made;
    }

    /** Every mark in view has at least two pixels; marks on the same pixels are drawn once. */
    lane(g, bottom) {
      for (const name of this.told.marks || []) {
        const mark = marks[name];
        if (!mark) continue;
        g.fillStyle = colour(mark.colour);
        let drawn = -1;
        for (const where of mark.places) {
          if (where < view.from || where > view.to) continue;
          const x = Math.round(this.x(where)) - 1;
          if (x <= drawn) continue;
          g.fillRect(x, bottom + 2, 2, LANE - 3);
          drawn = x;
        }
      }
    }

    lines(g, bottom) {
      g.setLineDash([2, 3]);
      g.strokeStyle = colour("soft");
      for (const step of data.starts) this.line(g, this.x(bucketOf(step)), bottom);
      for (const found of data.violations) {
        g.strokeStyle = colour(found.severity);
        this.line(g, this.x(place(found.step)), bottom);
      }
      g.setLineDash([]);
      for (const found of data.violations) {
        const x = this.x(place(found.step));
        g.fillStyle = colour(found.severity);
        g.beginPath(); g.moveTo(x - 4, 0); g.lineTo(x + 4, 0); g.lineTo(x, 7); g.fill();
      }
      if (this.start != null && at !== null) {
        const from = Math.min(this.start, at), to = Math.max(this.start, at) + 1;
        g.fillStyle = colour("band");
        g.fillRect(this.x(from), TOP, this.x(to) - this.x(from), bottom - TOP);
      }
      if (at !== null && at >= view.from && at < view.to) {
        g.strokeStyle = colour("ink");
        g.globalAlpha = 0.55;
        this.line(g, this.x(at + 0.5), bottom);
        g.globalAlpha = 1;
      }
    }
    line(g, x, bottom) {
      x = Math.round(x) + 0.5;
      g.beginPath(); g.moveTo(x, 0); g.lineTo(x, bottom + LANE); g.stroke();
    }

    say() {
      if (at === null) { this.read.textContent = ""; return; }
      const one = (series) => {
        const mean = series.mean[at];
        const low = series.low && series.low[at], high = series.high && series.high[at];
        const spread = low !== null && low !== undefined && low !== high ? ` (${number(low)} to ${number(high)})` : "";
        return `${series.name} ${number(mean)}${spread}`;
      };
      this.read.textContent = steps(at) + ": " + this.told.series.map(one).join(", ") + this.marked();
    }
    marked() {
      let said = "";
      for (const name of this.told.marks || []) {
        const mark = marks[name];
        if (!mark) continue;
        const inside = mark.at.filter((step) => step >= data.from[at] && step <= data.to[at]).length;
        if (inside) said += `, ${data.from[at] === data.to[at] ? "" : inside + " × "}${mark.name}`;
      }
      return said;
    }
  }

  const steps = (bucket) => data.from[bucket] === data.to[bucket]
    ? `step ${number(data.from[bucket])}`
    : `steps ${number(data.from[bucket])} to ${number(data.to[bucket])}`;

  const charts = data.charts.map((told) => new Chart(document.getElementById("chart-" + told.id), told));
  const reset = document.getElementById("reset");
  const live = document.getElementById("live");

  let asked = false;
  const draw = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      colours.clear();
      for (const chart of charts) { chart.draw(); chart.say(); }
      root.dataset.drawn = String(charts.length);
    });
  };
  const point = (bucket) => { at = bucket; draw(); };
  const zoom = (from, to) => {
    view.from = Math.max(0, Math.min(from, buckets - 1));
    view.to = Math.min(buckets, Math.max(to, view.from + Math.min(4, buckets)));
    view.from = Math.max(0, Math.min(view.from, view.to - Math.min(4, buckets)));
    reset.disabled = view.from === 0 && view.to === buckets;
    draw();
  };
  const show = (bucket) => {
    const wide = view.to - view.from;
    if (bucket < view.from || bucket >= view.to) zoom(bucket - (wide >> 1), bucket - (wide >> 1) + wide);
    point(bucket);
  };
  /** All places that somebody may want to see next. */
  const places = [...new Set([
    ...Object.values(marks).flatMap((mark) => mark.at.map(bucketOf)),
    ...data.violations.map((found) => bucketOf(found.step)),
  ])].sort((a, b) => a - b);

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !buckets) return;
    const wide = view.to - view.from, now = at === null ? view.from : at;
    const far = event.shiftKey ? Math.max(1, Math.round(wide / 10)) : 1;
    const go = (bucket) => show(Math.max(0, Math.min(buckets - 1, bucket)));
    switch (event.key) {
      case "ArrowRight": go(at === null ? now : now + far); break;
      case "ArrowLeft": go(at === null ? now : now - far); break;
      case "Home": go(0); break;
      case "End": go(buckets - 1); break;
      case "n": go(places.find((bucket) => at === null || bucket > at) ?? now); break;
      case "p": go(places.filter((bucket) => bucket < now).pop() ?? now); break;
      case "+": case "=": zoom(Math.round(now - wide / 4), Math.round(now + wide / 4)); break;
      case "-": zoom(Math.round(now - wide), Math.round(now + wide)); break;
      case "0": case "Escape": zoom(0, buckets); break;
      default: return;
    }
    event.preventDefault();
    const chart = charts.find((one) => one.canvas === event.currentTarget);
    if (chart) requestAnimationFrame(() => { chart.say(); live.textContent = chart.read.textContent; });
  }

  reset.addEventListener("click", () => zoom(0, buckets));
  for (const button of document.querySelectorAll("button[data-step]")) {
    button.addEventListener("click", () => {
      const bucket = bucketOf(Number(button.dataset.step));
      zoom(bucket - 15, bucket + 16);
      point(bucket);
      document.getElementById("charts").scrollIntoView({ block: "start" });
      if (charts.length) charts[0].canvas.focus({ preventScroll: true });
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(draw).observe(document.body);
  zoom(0, buckets);
})();
