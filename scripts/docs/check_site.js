// What a reader does with the site, done in a frame of the same origin. The result is posted to check_site.py.
"use strict";

const problems = [];
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(what, condition, ms = 10000) {
    for (const end = Date.now() + ms; Date.now() < end; await wait(25)) {
        try {
            const value = condition();
            if (value)
                return value;
        } catch {
            // the page is not loaded yet
        }
    }
    problems.push(what);
    return null;
}

const frame = document.querySelector("iframe");
const page = () => frame.contentDocument;

async function load(path, width) {
    frame.style.width = `${width}px`;
    await new Promise((done) => {
        frame.onload = done;
        frame.src = path;
    });
    await until(`${path}: has no content`, () => page().querySelector("article h1"));
}

async function every_page(paths) {
    for (const path of paths) {
        for (const width of [1280, 360]) {
            await load(path, width);
            const wide = page().documentElement.scrollWidth;
            if (wide > width) {
                const most = [...page().querySelectorAll("article *")].findLast(
                    (e) => e.getBoundingClientRect().left + e.scrollWidth > width &&
                        !e.closest("pre, .md-typeset__scrollwrap"));
                problems.push(`${path}: ${wide} pixels wide on a screen of ${width}: ${most ? most.outerHTML.slice(0, 200) : ""}`);
            }
            const small = [...page().querySelectorAll("article p, article li, article td")].find(
                (e) => parseFloat(frame.contentWindow.getComputedStyle(e).fontSize) < 10);
            if (small)
                problems.push(`${path}: text of less than 10 pixels at ${width}`);
        }
        for (const image of page().querySelectorAll("article img"))
            if (!image.complete || image.naturalWidth === 0)
                problems.push(`${path}: the image ${image.src} does not load`);
    }
}

async function navigation() {
    await load("/index.html", 1280);
    const tab = [...page().querySelectorAll(".md-tabs__link")].find((e) => e.textContent.trim() === "Tutorial");
    if (!tab)
        return problems.push("there is no tab for the tutorial");
    tab.click();
    await until("the tab does not lead to the tutorial",
        () => frame.contentWindow.location.pathname === "/tutorial/index.html" &&
            page().querySelector("article h1").textContent.startsWith("Tutorial"));
    const next = page().querySelector(".md-footer__link--next");
    if (!next)
        return problems.push("the tutorial has no link to the next page");
    next.click();
    await until("the next page is not step 1", () => frame.contentWindow.location.pathname === "/tutorial/1-echo.html");

    await load("/index.html", 360);
    page().querySelector("label[for=__drawer]").click();
    await until("the menu does not open on a phone",
        () => page().querySelector(".md-sidebar--primary").getBoundingClientRect().left >= 0);
}

async function search() {
    await load("/index.html", 1280);
    const field = page().querySelector(".md-search__input");
    field.focus();
    field.value = "counting_semaphore";
    field.dispatchEvent(new frame.contentWindow.KeyboardEvent("keyup", {key: "e", bubbles: true}));
    field.dispatchEvent(new frame.contentWindow.Event("input", {bubbles: true}));
    const result = await until("the search for counting_semaphore finds nothing",
        () => page().querySelector(".md-search-result__link"), 20000);
    if (!result)
        return;
    const found = new URL(result.href).pathname;
    result.click();
    await until(`the result ${found} does not lead to a page with the word`,
        () => frame.contentWindow.location.pathname === found &&
            page().querySelector("article").textContent.includes("counting_semaphore"));
}

async function colours() {
    await load("/index.html", 1280);
    const background = () => frame.contentWindow.getComputedStyle(page().body).backgroundColor;
    const before = background();
    const other = [...page().querySelectorAll("form[data-md-component=palette] label")].find((e) => !e.hidden);
    if (!other)
        return problems.push("there is no switch for dark mode");
    other.click();
    await until("the switch for dark mode does nothing", () => background() !== before);
}

(async () => {
    try {
        const paths = await (await fetch("/__pages__")).json();
        await every_page(paths);
        await navigation();
        await search();
        await colours();
        await fetch("/__result__", {method: "POST", body: JSON.stringify({pages: paths.length, problems})});
    } catch (error) {
        await fetch("/__result__", {method: "POST", body: JSON.stringify({pages: 0, problems: [...problems, String(error)]})});
    }
})();
