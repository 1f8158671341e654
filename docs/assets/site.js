/* For readers without a mouse: what scrolls can be reached by keys, and the groups of copy buttons have names. */
"use strict";

function name_and_reach() {
    document.querySelectorAll(".md-code__nav").forEach((group, k) => {
        group.setAttribute("aria-label", `Code ${k + 1}`);
    });
    for (const part of document.querySelectorAll("pre > code, .md-typeset__scrollwrap, .picture")) {
        if (part.scrollWidth > part.clientWidth && part.tabIndex !== 0) {
            part.tabIndex = 0;
        }
    }
}

new MutationObserver(name_and_reach).observe(document.body, {
    attributeFilter: ["tabindex"],
    childList: true,
    subtree: true,
});
addEventListener("resize", name_and_reach);
