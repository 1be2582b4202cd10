// The agent playing: frames as they come, and the controls under them.

import { short } from "./format.js";

const $ = (selector) => document.querySelector(selector);

export class Screen {
  constructor(tell) {
    this.tell = tell;
    this.canvas = $("#screen");
    this.paused = false;
    $(".screen").classList.add("empty");
    $("#pause").addEventListener("click", () => this.toggle());
    $("#speed").addEventListener("click", ({ target }) => {
      if (target.dataset.speed) this.tell({ speed: Number(target.dataset.speed) });
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== " " || event.target.closest("button, select, summary, input")) return;
      event.preventDefault();
      this.toggle();
    });
  }

  toggle() { this.tell({ paused: !this.paused }); }

  /** What the player says of itself: {paused, speed, note}. */
  player({ paused, speed, note }) {
    this.paused = paused;
    $("#pause").textContent = paused ? "Play" : "Pause";
    for (const button of $("#speed").children)
      button.setAttribute("aria-pressed", Number(button.dataset.speed) === speed);
    if (note) {
      $("#screen-note").textContent = note;
      $(".screen").classList.add("empty");
      $("#verdict").hidden = true;
    }
    $("#screen-note").hidden = !note;
    document.querySelector(".controls").hidden = Boolean(note) && !this.canvas.dataset.frames;
  }

  /** Four bytes that say how long the caption is, the caption as JSON, then an image. */
  async frame(data) {
    const length = new DataView(data).getUint32(0);
    const caption = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
    const image = await createImageBitmap(new Blob([new Uint8Array(data, 4 + length)], { type: "image/jpeg" }));
    if (this.canvas.width !== image.width || this.canvas.height !== image.height) {
      [this.canvas.width, this.canvas.height] = [image.width, image.height];
    }
    $(".screen").style.aspectRatio = Math.max(image.width / image.height, 4 / 3);
    this.canvas.getContext("2d").drawImage(image, 0, 0);
    image.close();
    $(".screen").classList.remove("empty");
    $("#screen-note").hidden = true;
    document.querySelector(".controls").hidden = false;
    $("#episode").textContent = caption.episode;
    $("#step").textContent = caption.step;
    $("#return").textContent = short(caption.return);
    $("#policy-note").textContent = caption.policy;
    $("#verdict").hidden = !caption.ended;
    $("#verdict").textContent = caption.ended;
    this.canvas.dataset.frames = Number(this.canvas.dataset.frames ?? 0) + 1;
  }
}
