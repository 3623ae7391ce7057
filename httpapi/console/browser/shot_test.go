package browser

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func TestShot(t *testing.T) {
	a, c := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath("/usr/bin/chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Headless, chromedp.UserDataDir(t.TempDir()))
	defer c()
	ctx, c2 := chromedp.NewContext(a)
	defer c2()
	ctx, c3 := context.WithTimeout(ctx, 120*time.Second)
	defer c3()
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Run(ctx, chromedp.Title()); err != nil {
		t.Fatal(err)
	}
	go func() {
		for m := range chromedp.Console(ctx) {
			t.Log(m.String())
		}
	}()
	base := os.Getenv("URL")
	_ = emulation.SetEmulatedMedia
	w := int64(1280)
	scheme := "light"
	if os.Getenv("W") != "" {
		w = 800
	}
	if os.Getenv("DARK") != "" {
		scheme = "dark"
	}
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(w, 800), chromedp.Navigate(base), chromedp.Sleep(time.Second)); err != nil {
		t.Fatal(err)
	}
	b, _ := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	os.WriteFile("/tmp/c1/shots/signin.png", b, 0o644)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`(document.querySelector('.signin button.primary')?.click(), true)`)); err != nil {
		t.Fatal(err)
	}
	chromedp.Do(ctx, chromedp.Sleep(3*time.Second))
	for _, p := range strings.Split(os.Getenv("PAGES"), " ") {
		if err := chromedp.Do(ctx, chromedp.Navigate(base+"/"+p), chromedp.Sleep(2500*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if js := os.Getenv("JS"); js != "" {
			v, err := chromedp.Run(ctx, chromedp.Evaluate[string](js))
			t.Log(v, err)
			chromedp.Do(ctx, chromedp.Sleep(1000*time.Millisecond))
		}
		b, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(p, "?")
		os.WriteFile("/tmp/c1/shots/"+name+".png", b, 0o644)
	}
}
