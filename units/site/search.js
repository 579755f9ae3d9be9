// SPDX-License-Identifier: MIT
// Before this stands INDEX: address, title of the page, heading and words of each section.

const FOUND_MAX = 20;

// How well a section fits: 0 unless it has each of the wanted words, or one that begins with it.
function score([, title, heading, words], wanted) {
    const named = ` ${title} ${heading} `.toLowerCase(), text = ` ${words} `;
    let sum = 0;
    for (const word of wanted) {
        const value = named.includes(word) ? 3 : text.includes(` ${word} `) ? 2 : text.includes(` ${word}`) ? 1 : 0;
        if (value === 0)
            return 0;
        sum += value;
    }
    return sum;
}

// The entries of sections that fit, the best first.
function search(query) {
    const wanted = query.toLowerCase().split(/[^\p{L}\p{N}_.@()-]+/u).filter(Boolean);
    return INDEX.map(entry => [score(entry, wanted), entry]).filter(([sum]) => sum > 0).sort((a, b) => b[0] - a[0])
        .slice(0, FOUND_MAX).map(([, entry]) => entry);
}

function show(query, list) {
    list.replaceChildren(...search(query).map(([address, title, heading]) => {
        const item = document.createElement("li"), link = document.createElement("a");
        link.href = address;
        link.textContent = heading ? `${title}: ${heading}` : title;
        item.append(link);
        return item;
    }));
}

// A click on a command copies it, a selection with the mouse does not.
async function copy(command) {
    if (!getSelection().isCollapsed)
        return;
    await navigator.clipboard.writeText(command.textContent);
    command.classList.add("copied");
    setTimeout(() => command.classList.remove("copied"), 600);
}

function begin() {
    const query = document.getElementById("query"), found = document.getElementById("found");
    query.addEventListener("input", () => show(query.value, found));
    document.addEventListener("keydown", event => {
        if (event.key === "/" && document.activeElement !== query) {
            event.preventDefault();
            query.focus();
        } else if (event.key === "Escape") {
            query.value = "";
            show("", found);
        } else if (event.key === "Enter" && document.activeElement === query) {
            found.querySelector("a")?.click();
        }
    });
    found.addEventListener("click", () => show("", found));
    for (const command of navigator.clipboard ? document.querySelectorAll("kbd") : []) {
        command.title = "Copy";
        command.addEventListener("click", () => copy(command));
    }
}

if (typeof document !== "undefined")
    begin();
