"use strict";
// The home page: uploads a file, shows the stages of its evaluation and opens the report. Texts are only ever set as text.

const $ = (id) => document.getElementById(id);
const HEADERS = { "X-Whyscore": "upload" };
let upload = null;

const show = (answer) => {
  $("progress").hidden = !["waiting", "running"].includes(answer.state);
  if (answer.total) $("bar").value = answer.done / answer.total;
  else $("bar").removeAttribute("value");
  const counts = answer.total ? ` · ${answer.done.toLocaleString("en")} of ${answer.total.toLocaleString("en")}` : "";
  const running = answer.stage ? `${answer.name}: ${answer.stage}${counts}` : `${answer.name}: starting …`;
  const texts = { waiting: `${answer.name}: waiting for another upload …`, running, failed: answer.error, cancelled: `${answer.name}: cancelled` };
  $("status").textContent = texts[answer.state] ?? "";
};

const finish = (text) => {
  upload = null;
  $("progress").hidden = true;
  $("go").disabled = false;
  if (text) $("status").textContent = text;
};

const look = async () => {
  if (!upload) return;
  try {
    const response = await fetch(`/api/uploads/${encodeURIComponent(upload)}`);
    const answer = await response.json();
    if (!response.ok) return finish(answer.error);
    show(answer);
    if (answer.state === "done") location.assign(`/runs/${encodeURIComponent(answer.run)}`);
    else if (["waiting", "running"].includes(answer.state)) setTimeout(look, 300);
    else finish();
  } catch {
    finish("The server cannot be reached.");
  }
};

const send = async (event) => {
  event.preventDefault();
  const file = $("file").files[0];
  if (!file || upload) return;
  const asked = new URLSearchParams({ name: file.name, pair: $("pair").value.trim() });
  for (const box of document.querySelectorAll("[name=metric]:checked")) asked.append("metric", box.value);
  $("go").disabled = true;
  $("status").textContent = `${file.name}: uploading …`;
  try {
    const response = await fetch(`/api/uploads?${asked}`, { method: "POST", headers: HEADERS, body: file });
    const answer = await response.json();
    if (!response.ok) return finish(answer.error);
    upload = answer.id;
    show(answer);
    look();
  } catch {
    finish("The server cannot be reached.");
  }
};

$("upload-form").addEventListener("submit", send);
$("cancel").addEventListener("click", () => {
  if (upload) fetch(`/api/uploads/${encodeURIComponent(upload)}`, { method: "DELETE", headers: HEADERS });
});
const compare = $("compare");
if (compare) {
  const count = () => {
    const chosen = compare.querySelectorAll("[name=run]:checked").length;
    compare.querySelector("button").disabled = chosen < 2;
  };
  compare.addEventListener("change", count);
  count();
}
