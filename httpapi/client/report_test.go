package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// reporting is a server that answers every request with what handle does, and a client of it.
func reporting(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	c := New(Config{Address: strings.TrimPrefix(s.URL, "http://"), Prefix: "/om", Token: "tok"})
	t.Cleanup(c.Close)
	return c
}

// answerReport answers with lines and the trailers given.
func answerReport(w http.ResponseWriter, lines, count, sum string) {
	w.Header().Set("Trailer", "X-Report-Count, X-Report-Sha256")
	w.Header().Set("X-Report-From-Seq", "2")
	w.Header().Set("X-Report-To-Seq", "9")
	_, _ = io.WriteString(w, lines)
	w.Header().Set("X-Report-Count", count)
	w.Header().Set("X-Report-Sha256", sum)
}

func TestReportIsCheckedToTheEnd(t *testing.T) {
	const lines = "{\"sequence\":2}\n{\"sequence\":3}\n"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(lines)))
	for _, tt := range []struct{ name, lines, count, sum string }{
		{"whole", lines, "2", sum}, {"another sum", lines, "2", strings.Repeat("0", 64)},
		{"another count", lines, "3", sum}, {"nothing said", lines, "", ""},
		{"half a line", lines[:20], "1", fmt.Sprintf("%x", sha256.Sum256([]byte(lines[:20])))},
		{"empty", "", "0", fmt.Sprintf("%x", sha256.Sum256(nil))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := reporting(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.String() != "/om/regulatory/report?fromSeq=2" ||
					r.Header.Get("Authorization") != "Bearer tok" {
					t.Errorf("asked %s", r.URL)
				}
				answerReport(w, tt.lines, tt.count, tt.sum)
			})
			report, err := c.RegulatoryReport(t.Context(), 2, 0)
			must.OK(t, err)
			defer report.Close()
			text, err := io.ReadAll(report)
			good := tt.name == "whole" || tt.name == "empty"
			if good != (err == nil) || !good && !errors.Is(err, ErrAnswer) || string(text) != tt.lines {
				t.Errorf("read %q: %v", text, err)
			}
			if report.FromSeq != 2 || report.ToSeq != 9 || good && report.SHA256() != tt.sum {
				t.Errorf("report %+v", report)
			}
		})
	}
}

func TestReportFailures(t *testing.T) {
	c := reporting(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("fromSeq") {
		case "1":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"code":"ADMIN_REQUIRED","detail":"no"}`)
		case "2": // ends before it is whole
			w.Header().Set("X-Report-From-Seq", "2")
			w.Header().Set("X-Report-To-Seq", "9")
			_, _ = io.WriteString(w, "{}\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "3": // does not name its range
			_, _ = io.WriteString(w, "{}\n")
		}
	})
	var p *Problem
	if _, err := c.RegulatoryReport(t.Context(), 1, 0); !errors.As(err, &p) || p.Status != 403 ||
		p.Code != "ADMIN_REQUIRED" {
		t.Errorf("refused: %v", err)
	}
	report := must.Get(c.RegulatoryReport(t.Context(), 2, 0))(t)
	defer report.Close()
	if text, err := io.ReadAll(report); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %q %v", text, err)
	}
	if _, err := c.RegulatoryReport(t.Context(), 3, 0); !errors.Is(err, ErrAnswer) {
		t.Errorf("without a range: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := c.RegulatoryReport(ended, 1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
