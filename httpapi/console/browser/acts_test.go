package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// hasFocus waits until an element has the focus.
func (p *page) hasFocus(role, name string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("the %s %q has the focus", role, name), func() bool {
		r, n := p.focused()
		return r == role && strings.EqualFold(n, name)
	})
}

// TestADialogGivesTheFocusBack: to what it was opened from, however it is closed.
func TestADialogGivesTheFocusBack(t *testing.T) {
	s := start(t)
	s.fill()
	p := open(t)
	p.signIn(s)
	closed := func() {
		t.Helper()
		p.eventually("the dialog closes", func() bool { return len(p.nodes("dialog", "")) == 0 })
	}
	p.goTo(s, "/controls")
	p.tabTo("switch", "Kill switch")
	p.press(" ")
	p.find("dialog", "Refuse every order?")
	p.press(kb.Escape)
	closed()
	p.hasFocus("switch", "Kill switch")
	p.press(" ")
	p.tabTo("button", "Close")
	p.press(kb.Enter)
	closed()
	p.hasFocus("switch", "Kill switch")
	p.press(" ")
	p.tabTo("textbox", "Reason")
	p.press("drill")
	p.press(kb.Enter) // Confirm
	closed()
	p.hasFocus("switch", "Kill switch")

	p.goTo(s, "/contracts")
	p.tabTo("row", "")
	p.press(kb.Enter)
	p.find("dialog", "")
	p.tabTo("button", "Why") // a dialog on a dialog
	p.press(kb.Enter)
	p.eventually("both dialogs are open", func() bool {
		return eval[int](p, "document.querySelectorAll('dialog').length") == 2
	})
	p.press(kb.Escape)
	p.hasFocus("button", "Why")
	p.press(kb.Escape)
	closed()
	p.eventually("the row has the focus", func() bool {
		role, _ := p.focused()
		return role == "row"
	})
	p.clean(s)
}

// TestANarrowWindowNeedsNoSidewaysScroll: every page, at the width of a telephone.
func TestANarrowWindowNeedsNoSidewaysScroll(t *testing.T) {
	s := start(t)
	head := s.fill()
	p := open(t)
	p.signIn(s)
	p.size(320, 800)
	for _, page := range pages {
		query := queries[page.path]
		if strings.Contains(query, "%d") {
			query = fmt.Sprintf(query, head)
		}
		p.goTo(s, "/"+page.path+query)
		p.find("heading", page.name)
		p.says(page.full)
		p.picture(page.path + "-full-light-320")
		p.accessible(page.path + "-320")
		if wide := eval[int](p, "document.documentElement.scrollWidth"); wide > 320 {
			t.Errorf("%s is %d pixels wide", page.name, wide)
		}
		if page.path == "trade" {
			if wide := eval[float64](p, `document.querySelector('table[aria-label=Book]').
				closest('.card').getBoundingClientRect().width`); wide < 200 {
				t.Errorf("the book is %v pixels wide", wide)
			}
		}
	}
	p.clean(s)
}
