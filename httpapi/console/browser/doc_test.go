// Package browser tests the console as its users meet it: a real browser, the real program, a real
// journal. It finds things by role and accessible name, as screen readers do, and presses keys.
//
// It is a module of its own, so that the product does not depend on the driver of the browser. It
// needs Debian's chromium, or the program that CHROMIUM names, and it fails without one: `make
// browser` runs it.
package browser
