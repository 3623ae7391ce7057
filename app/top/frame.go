package top

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// tone is the meaning of a piece of a line; it selects the colour.
//
// A frame without colours loses no information: words say what colours show.
type tone uint8

const (
	tonePlain tone = iota
	toneTitle
	toneFaint
	toneGood
	toneWarning
	toneBad
)

// toneCodes are the ANSI attributes of the tones.
//
// They are parameters of the escape sequence CSI m, by ECMA-48.
var toneCodes = [...]string{tonePlain: "", toneTitle: "1", toneFaint: "2", toneGood: "32",
	toneWarning: "33", toneBad: "31"}

// piece is a text of one tone, frameLine a line of pieces, frame what is shown at once.
type piece struct {
	text string
	tone tone
}

// An empty frameLine separates sections and is the first to go when the screen is too low.
type (
	frameLine []piece
	frame     []frameLine
)

// nameWidth is the width of the left column, which has the names.
//
// Labels are two columns shorter and indented by two.
const nameWidth = 12

// say is a piece of the plain tone, formatted as by fmt.Sprintf.
func say(format string, args ...any) piece { return piece{fmt.Sprintf(format, args...), tonePlain} }

// heading begins a section, with the names of its columns or with its first figures.
func heading(name, columns string) frameLine { return headed(name, piece{columns, toneFaint}) }

// headed begins a section with pieces of the caller's tones behind its name.
func headed(name string, figures ...piece) frameLine {
	return append(frameLine{{fmt.Sprintf("%-*s", nameWidth, name), toneTitle}}, figures...)
}

// label is the name of a line within a section.
func label(name string) piece { return say("  %-*s", nameWidth-2, name) }

// fit cuts a frame to the columns and rows of a screen; 0 means no bound. It removes empty lines
// first. The last line says how many lines still have no room.
//
// The frame itself is not changed. width and height are the terminal's, in characters.
func (f frame) fit(width, height int) frame {
	if height > 0 && len(f) > height {
		var dense frame
		for _, line := range f {
			if len(line) > 0 {
				dense = append(dense, line)
			}
		}
		f = dense
	}
	if height > 0 && len(f) > height {
		rest := len(f) - height + 1
		f = append(f[:height-1:height-1],
			frameLine{{fmt.Sprintf("%d more lines: the window is too low", rest), toneFaint}})
	}
	out := make(frame, len(f))
	for i, line := range f {
		out[i] = line.cut(width)
	}
	return out
}

// cut ends a line at width columns; every character in a frame takes one column.
//
// A piece that has no room is kept empty, so that the number of pieces stays.
func (l frameLine) cut(width int) frameLine {
	if width <= 0 {
		return l
	}
	var out frameLine
	for _, p := range l {
		if n := utf8.RuneCountInString(p.text); n > width {
			p.text = string([]rune(p.text)[:width])
		}
		width -= utf8.RuneCountInString(p.text)
		out = append(out, p)
	}
	return out
}

// text is the frame as lines without trailing blanks, with or without colours.
//
// The lines end with a line feed alone; show adds a carriage return.
func (f frame) text(colour bool) string {
	var b strings.Builder
	for _, line := range f {
		var l strings.Builder
		for _, p := range line {
			if code := toneCodes[p.tone]; colour && code != "" && p.text != "" {
				fmt.Fprintf(&l, "\x1b[%sm%s\x1b[0m", code, p.text)
			} else {
				l.WriteString(p.text)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " "))
		b.WriteByte('\n')
	}
	return b.String()
}
