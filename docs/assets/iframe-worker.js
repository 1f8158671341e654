/* Web workers for pages of file://, where browsers allow none: the script runs in a hidden frame of the same origin.
 * The search of the site posts messages to it and receives messages of it, and uses nothing else of a worker. */
"use strict";

if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            const frame = document.createElement("iframe");
            frame.hidden = true;
            frame.title = "search";
            document.body.append(frame);
            this.scope = frame.contentWindow;
            this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
            this.ready = new Promise((loaded, failed) => {
                const script = frame.contentDocument.createElement("script");
                script.src = new URL(url, location.href).href;
                script.onload = loaded;
                script.onerror = failed;
                frame.contentDocument.body.append(script);
            });
        }

        postMessage(data) {
            this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
        }
    };
}
