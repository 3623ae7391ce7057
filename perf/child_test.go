package perf

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"posttrade/ring/must"
)

// A server that has been paused is ready until it finds out that its feeds were not heard: a look
// before that is not enough.
func TestAServerAdmitsWhenItHasDoneSoForASecond(t *testing.T) {
	var looks atomic.Int64
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := looks.Add(1); n > 5 && n <= 8 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer admin.Close()
	c := &child{ports: map[string]string{"admin": strings.TrimPrefix(admin.URL, "http://")}}
	must.OK(t, c.admits())
	if n := looks.Load(); n != 108 {
		t.Errorf("%d looks, want 100 after the eighth", n)
	}
}

func TestTheBareServerIsNotAskedWhetherItAdmits(t *testing.T) {
	must.OK(t, (&child{}).admits())
}
