// Operates the page of coil-top in a frame of the same origin. drive_coil_top.py serves both and reads the result.
"use strict";

const problems = [];
const frame = document.querySelector("iframe");
const page = () => frame.contentDocument;
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(what, condition) {
    for (const end = Date.now() + 20000; Date.now() < end; await wait(25)) {
        try {
            if (condition())
                return;
        } catch {
            // the page is not loaded yet
        }
    }
    problems.push(`${what}; the page shows: ${page().body.innerText}`);
}

/** The texts of a column of a table. */
const column = (table, at) => [...page().querySelector(`#${table} tbody`).rows].map((row) => row.cells[at].textContent);
const shows = (table, at, wanted) => column(table, at).join() === wanted.join();
const heading = (table, key) => page().querySelector(`#${table} th[data-key=${key}]`);

function filter(text) {
    const field = page().querySelector("#filter");
    field.value = text;
    field.dispatchEvent(new frame.contentWindow.Event("input", {bubbles: true}));
}

async function drive() {
    await until("no contexts by name", () => shows("contexts", 0, ["main", "other"]));
    const at = [...heading("contexts", "tasks").parentNode.children].indexOf(heading("contexts", "tasks"));
    await until("no numbers of tasks", () => shows("contexts", at, ["51", "100"]));
    heading("contexts", "tasks").click();
    await until("no contexts by tasks", () => shows("contexts", 0, ["other", "main"]));

    await until("no waits by count", () => shows("waits", 0, ["sleep", "mutex", "recv"]) && shows("waits", 1, ["130", "20", "1"]));
    heading("waits", "name").click();
    await until("no waits by name", () => shows("waits", 0, ["mutex", "recv", "sleep"]));
    await until("no names", () => shows("names", 0, ["extra", "sleeper", "watched::waits", "session"]));
    heading("frames", "count").click();
    await until("no frames by count", () => shows("frames", 0, ["watched::sleeps", "watched::waits", "watched::session"]));

    await until("no lock", () => column("locks", 0)[0]?.startsWith("mutex at 0x") && shows("locks", 1, ["20"]) &&
        shows("locks", 2, ["not locked by a task that is listed"]));

    const stall = () => column("stalls", 0).indexOf("watched::blocks_for");
    await until("no stall", () => column("stalls", 3)[stall()] === "blocker");
    if (!/^[3-9][0-9][0-9]\.[0-9] ms$/.test(column("stalls", 4)[stall()]))
        problems.push(`the stall has taken ${column("stalls", 4)[stall()]}`);

    filter("mutex");
    await until("the filter keeps other waits", () => shows("waits", 0, ["mutex"]) && shows("names", 0, []));
    if (page().querySelector("#stall_section").hidden === false)
        problems.push("the filter keeps the stall");
    page().querySelector("#list").click();
    const listed = () => page().querySelector("#tasks").textContent.split("\n");
    await until("no list of the filtered tasks", () =>
        listed().length === 20 && listed().every((line) => line.startsWith("main: watched::waits: mutex at 0x")));
    filter("");
    await until("the filter cannot be removed", () => shows("waits", 0, ["mutex", "recv", "sleep"]));

    const wide = page().documentElement.scrollWidth;
    if (wide > frame.clientWidth)
        problems.push(`the page is ${wide} pixels wide in a window of ${frame.clientWidth}`);
    if (page().querySelector("#error").textContent !== "")
        problems.push(page().querySelector("#error").textContent);
}

frame.src = "/";
drive().catch((error) => problems.push(String(error))).then(
    () => fetch("/result", {method: "POST", body: JSON.stringify(problems)}));
