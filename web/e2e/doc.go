// Package e2e tests the page of a profile in a browser. It is a module of its own so
// that what drives the browser stays out of the program's module graph.
//
// The tests need Chromium in the search path and, for the rules on accessibility,
// axe-core (npm ci in web/). Without them they skip with one line, or fail when
// OPMETER_REQUIRE is set. OPMETER_SCREENSHOTS names the folder for the images of
// every view.
package e2e
