// Package browser opens pages in a headless Chromium and notes what they do that a
// page for reading must not: messages on the console, requests, dialogs.
package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	protocol "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// limit ends a step that hangs. It is far above what any step takes, so that a slow
// machine passes.
const limit = time.Minute

// Browser is a running Chromium with a profile folder of its own.
type Browser struct {
	ctx  context.Context
	stop context.CancelFunc
	dir  string
}

// Path returns the program that [Start] runs, or an error if absent.
func Path() (string, error) { return exec.LookPath("chromium") }

// Start runs Chromium without a window.
func Start() (*Browser, error) {
	program, err := Path()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "opmeter-chromium-")
	if err != nil {
		return nil, err
	}
	allocator, stop := chromedp.NewExecAllocator(
		context.Background(),
		chromedp.ExecPath(program),
		chromedp.UserDataDir(dir),
		chromedp.Headless,
		chromedp.NoSandbox, // tests run as root in containers, where there is no sandbox
		chromedp.DisableGPU,
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		// The shared memory of a container is often too small.
		chromedp.Flag("disable-dev-shm-usage", true),
		// A tab behind another one must draw like the one in front.
		chromedp.Flag("disable-background-timer-throttling", true),
		chromedp.Flag("disable-backgrounding-occluded-windows", true),
		chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("force-color-profile", "srgb"),
	)
	ctx, cancel := chromedp.NewContext(allocator)
	b := &Browser{ctx: ctx, dir: dir, stop: func() { cancel(); stop() }}
	// The browser lives as long as the context of the first action.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		b.Close()
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	return b, nil
}

// Close ends the browser and removes its files.
func (b *Browser) Close() {
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	chromedp.Cancel(ctx) //nolint:errcheck // what is left is stopped below
	cancel()
	b.stop()
	os.RemoveAll(b.dir)
}

// Tab is one page in a context of its own: it shares no storage with others.
type Tab struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	problems []string
	requests []string
	dialogs  []string
}

// Open makes an empty tab of the given size in CSS pixels. A narrow one (below 600)
// behaves like a telephone's.
func (b *Browser) Open(width, height int) (*Tab, error) {
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t := &Tab{ctx: ctx, cancel: cancel}
	err := chromedp.Listen(ctx, t.note)
	if err == nil {
		_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	}
	if err == nil {
		err = t.Resize(width, height)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return t, nil
}

// Close closes the tab.
func (t *Tab) Close() { t.cancel() }

// note gathers events. It runs on the goroutine that reads them and must be quick.
func (t *Tab) note(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		switch e.Type {
		case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
			text := "console." + string(e.Type) + ":"
			for _, a := range e.Args {
				if a.Description != "" {
					text += " " + a.Description
				} else {
					text += " " + string(a.Value)
				}
			}
			t.problems = append(t.problems, text)
		}
	case *runtime.EventExceptionThrown:
		d := e.ExceptionDetails
		text := d.Text
		if d.Exception != nil {
			text += " " + d.Exception.Description
		}
		t.problems = append(t.problems, "exception: "+text)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			t.problems = append(t.problems, fmt.Sprintf("log %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		t.requests = append(t.requests, e.Request.URL)
	case *network.EventWebSocketCreated:
		t.requests = append(t.requests, e.URL)
	case *page.EventJavascriptDialogOpening:
		t.dialogs = append(t.dialogs, e.Message)
		// The page stands still until the dialog is answered.
		go chromedp.Call(t.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) //nolint:errcheck // the tab may be gone
	}
}

// Problems lists the errors and warnings on the console, the exceptions that no one
// caught and the browser's own complaints, in their order.
func (t *Tab) Problems() []string { return t.copy(&t.problems) }

// Requests lists the addresses that the tab asked for.
func (t *Tab) Requests() []string { return t.copy(&t.requests) }

// Dialogs lists the texts of the dialogs that the page opened.
func (t *Tab) Dialogs() []string { return t.copy(&t.dialogs) }

func (t *Tab) copy(v *[]string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), *v...)
}

// FileURL is the address of a file.
func FileURL(path string) (string, error) {
	p, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(p)}).String(), nil
}

// Do runs actions.
func (t *Tab) Do(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

// Goto opens an address.
func (t *Tab) Goto(address string) error { return t.Do(chromedp.Navigate(address)) }

// Resize sets the size of the visible part in CSS pixels.
func (t *Tab) Resize(width, height int) error {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(width), Height: int64(height), DeviceScaleFactor: 1, Mobile: width < 600,
	})
	return err
}

// Scripts switches the page's scripts on or off, from the next page on.
func (t *Tab) Scripts(on bool) error {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
	return err
}

// Reload opens the page anew.
func (t *Tab) Reload() error { return t.Do(chromedp.Reload()) }

// Media sets what CSS is told: the medium ("screen" or "print") and the system's
// colour scheme ("light" or "dark").
func (t *Tab) Media(medium, scheme string) error {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	return err
}

// Eval computes a JavaScript expression in the page, awaits it where it is a promise,
// and returns its value.
func Eval[T any](t *Tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Wait waits until the expression is true.
func (t *Tab) Wait(expression string) error { return t.WaitFor(expression, 2*time.Minute) }

// WaitFor is [Tab.Wait] with another time after which it gives up.
func (t *Tab) WaitFor(expression string, d time.Duration) error {
	for end := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		ok, err := Eval[bool](t, "!!("+expression+")")
		if err != nil {
			return fmt.Errorf("%s: %w", expression, err)
		}
		if ok {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("never true: %s", expression)
		}
	}
}

// Settle waits until what was changed is drawn.
func (t *Tab) Settle() error {
	_, err := Eval[bool](t, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	return err
}

// Screenshot returns what is visible as PNG.
func (t *Tab) Screenshot() ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}

// PDF prints the page on A4.
func (t *Tab) PDF() ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	r, err := chromedp.Call(ctx, page.PrintToPDF, page.PrintToPDFParams{PaperWidth: 8.27, PaperHeight: 11.69})
	return r.Data, err
}

// Wheel turns the mouse wheel by so many pixels at a place.
func (t *Tab) Wheel(x, y, dx, dy float64, m ...chromedp.Modifier) error {
	return t.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseWheel, x, y, chromedp.ButtonModifiers(m...), func(p *input.DispatchMouseEventParams) {
		// The browser asks for both, and what is 0 is not sent.
		p.DeltaX, p.DeltaY = dx+1e-9, dy+1e-9
	}))
}

// Hover moves the mouse to a place.
func (t *Tab) Hover(x, y float64) error {
	return t.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
}

// Click presses and releases the left button at a place.
func (t *Tab) Click(x, y float64) error { return t.Do(chromedp.MouseClickXY(x, y)) }

// DoubleClick clicks twice at a place, with a pause between the clicks.
func (t *Tab) DoubleClick(x, y float64, pause time.Duration) error {
	if err := t.Click(x, y); err != nil {
		return err
	}
	time.Sleep(pause)
	return t.Do(chromedp.MouseClickXY(x, y, chromedp.ClickCount(2)))
}

// Drag moves the mouse with its left button held down.
func (t *Tab) Drag(x0, y0, x1, y1 float64, m ...chromedp.Modifier) error {
	event := func(kind input.DispatchMouseEventType, x, y float64, buttons int64) chromedp.Action[chromedp.Void] {
		return chromedp.MouseEvent(kind, x, y, chromedp.ButtonModifiers(m...), func(p *input.DispatchMouseEventParams) {
			p.Button, p.Buttons, p.ClickCount = input.MouseButtonLeft, buttons, 1
		})
	}
	return t.Do(
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x0, y0, chromedp.ButtonModifiers(m...)),
		event(input.DispatchMouseEventTypeMousePressed, x0, y0, 1),
		event(input.DispatchMouseEventTypeMouseMoved, (x0+x1)/2, (y0+y1)/2, 1),
		event(input.DispatchMouseEventTypeMouseMoved, x1, y1, 1),
		event(input.DispatchMouseEventTypeMouseReleased, x1, y1, 0),
	)
}

// Press types keys into what has the focus; see package kb for those without a
// character.
func (t *Tab) Press(keys string, m ...chromedp.Modifier) error {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	for _, r := range keys {
		events := kb.Encode(r)
		down, up := events[0], events[len(events)-1]
		for _, k := range m {
			down.Modifiers |= int64(k)
			up.Modifiers |= int64(k)
		}
		// The character goes with the key and not as an event of its own, so that a
		// page that takes the key keeps the character from being typed.
		if len(events) == 3 && down.Modifiers&^int64(chromedp.ModifierShift) == 0 {
			down.Type, down.Text = input.DispatchKeyEventTypeKeyDown, events[1].Text
		}
		for _, e := range []*input.DispatchKeyEventParams{down, up} {
			if _, err := chromedp.Call(ctx, input.DispatchKeyEvent, *e); err != nil {
				return err
			}
		}
	}
	return nil
}

// Downloads keeps what the page offers as a file, under the name that it gives,
// in a folder.
func (t *Tab) Downloads(dir string) error {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	_, err := chromedp.CallBrowser(ctx, protocol.SetDownloadBehavior, protocol.SetDownloadBehaviorParams{
		Behavior:         protocol.SetDownloadBehaviorBehaviorAllow,
		BrowserContextID: chromedp.FromContext(t.ctx).BrowserContextID,
		DownloadPath:     dir,
	})
	return err
}

// Allow grants the tab a permission that a browser with a window would ask for, such
// as "clipboard-read".
func (t *Tab) Allow(permission string) error {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	_, err := chromedp.CallBrowser(ctx, protocol.SetPermission, protocol.SetPermissionParams{
		Permission:       &protocol.PermissionDescriptor{Name: permission},
		Setting:          protocol.PermissionSettingGranted,
		BrowserContextID: chromedp.FromContext(t.ctx).BrowserContextID,
	})
	return err
}
