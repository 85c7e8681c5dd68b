"use strict";
// How each outcome looks: a shape of its own, so that none is known by its colour alone. The origin is the instant, halfway up.
{
  const { draw, outcomes, names } = Duly;
  const bar = (width, kind) => draw("rect", { x: -2, y: -6.5, width, height: 13, rx: 2.5, class: kind });
  const path = (d, kind = "g-line") => draw("path", { d, class: kind });
  const SHAPES = {
    completed: (width) => [bar(Math.max(width, 5), "g-fill")],
    failed: (width) => [bar(Math.max(width, 11), "g-fill"), path("M0.5,-3 L6.5,3 M6.5,-3 L0.5,3", "g-cut")],
    abandoned: (width) => [bar(Math.max(width, 11), "g-soft"), bar(Math.max(width, 11), "g-line g-dashed"), path("M3.5,-3.5 L3.5,0.8 M3.5,3.6 L3.5,3.7")],
    open: (width) => [bar(Math.max(width, 10), "g-soft"), path(`M${Math.max(width, 10) - 3},-6.5 L-1,-6.5 L-1,6.5 L${Math.max(width, 10) - 3},6.5 M${Math.max(width, 10) - 5},-3 L${Math.max(width, 10) - 1},0 L${Math.max(width, 10) - 5},3`)],
    skipped: () => [draw("circle", { cx: 0, cy: 0, r: 4.6, class: "g-line" }), path("M-3.2,3.2 L3.2,-3.2")],
    superseded: () => [path("M-3.5,-4 L0.2,0 L-3.5,4 M0.8,-4 L4.5,0 L0.8,4")],
    held: () => [path("M-2,-4.5 L-2,4.5 M2.4,-4.5 L2.4,4.5")],
    waiting: () => [draw("circle", { cx: 0, cy: 0, r: 4.6, class: "g-line g-dotted" }), draw("circle", { cx: 0, cy: 0, r: 1.4, class: "g-fill" })],
  };
  const glyph = (outcome, width = 0) => draw("g", { class: `o-${outcome}` }, ...SHAPES[outcome](width));
  const icon = (outcome) => {
    const barred = ["completed", "failed", "abandoned", "open"].includes(outcome);
    const svg = draw("svg", { width: 17, height: 17, viewBox: "0 0 17 17", "aria-hidden": "true", focusable: "false" });
    const inside = glyph(outcome, barred ? 11 : 0);
    inside.setAttribute("transform", `translate(${barred ? 5 : 8.5},8.5)`);
    svg.append(inside);
    return svg;
  };
  const named = (outcome, words) => Duly.build("span", { class: "became" }, icon(outcome), words ?? names[outcome]);
  // Many at once: a column with a layer for each outcome, as high as they are many; what never ran is hollow.
  const RAN = ["completed", "failed", "abandoned"];
  const ORDER = ["failed", "abandoned", "open", "held", "waiting", "skipped", "superseded", "completed"].filter((one) => outcomes.includes(one));
  const column = (counts, width, share) => {
    const total = Object.values(counts).reduce((sum, one) => sum + one, 0);
    const height = 8 + 12 * share;
    const group = draw("g");
    let bottom = 13;
    for (const outcome of [...ORDER].reverse()) {
      const count = counts[outcome];
      if (!count) continue;
      const part = Math.max((height * count) / total, 3);
      const solid = RAN.includes(outcome);
      const inset = solid ? 0 : 0.65; // half of what outlines it
      group.append(draw("rect", { x: -2 + inset, y: bottom - part + inset, width: width - 2 * inset, height: part - 2 * inset, class: `o-${outcome} ${solid ? "g-fill" : "g-hollow"}` }));
      bottom -= part;
    }
    if (counts.failed || counts.abandoned) {
      group.append(draw("path", { d: `M${width / 2 - 4.2},${bottom - 6.5} l4.4,4.4 M${width / 2 + 0.2},${bottom - 6.5} l-4.4,4.4`, class: "o-failed g-line" }));
    }
    return group;
  };
  Object.assign(Duly, { glyph, icon, named, column });
}
