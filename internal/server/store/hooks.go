package store

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
)

// Hook is an address that is told what happens in a project.
type Hook struct {
	ID      string `db:"id" json:"id"`
	Project string `db:"project" json:"project"`
	URL     string `db:"url" json:"url"`
	Secret  string `db:"secret" json:"-"` // signs what is sent
	Created int64  `db:"created" json:"created_ms"`
}

// SecretPrefix begins the secrets of webhooks; base64 of the key follows.
const SecretPrefix = "whsec_"

// AddHook adds a webhook and makes its secret.
func (t *Tx) AddHook(project, url string) (Hook, error) {
	var key [24]byte
	_, _ = rand.Read(key[:]) // never fails
	h := Hook{ID: NewID(t.now()), Project: project, URL: url, Secret: SecretPrefix + base64.StdEncoding.EncodeToString(key[:]), Created: t.millis()}
	return h, insert(t, "hooks", h)
}

// Hook returns a webhook.
func (t *Tx) Hook(id string) (Hook, error) { return get[Hook](t, "hooks", "WHERE id = ?", id) }

// Hooks lists the webhooks of a project.
func (t *Tx) Hooks(project string) ([]Hook, error) {
	return list[Hook](t, "hooks", "WHERE project = ? ORDER BY id", project)
}

// RemoveHook removes a webhook and its deliveries.
func (t *Tx) RemoveHook(id string) error { return t.one("DELETE FROM hooks WHERE id = ?", id) }

// Delivery is an event for a webhook.
type Delivery struct {
	ID    string `db:"id" json:"id"`
	Hook  string `db:"hook" json:"hook"`
	Event string `db:"event" json:"event"`
	// Object is what the event is about, such as a run: a webhook is told once.
	Object  string `db:"object" json:"object"`
	Body    string `db:"body" json:"-"`
	Created int64  `db:"created" json:"created_ms"`
	// Attempts counts how often it was sent, Next is when it is due, nil at the end.
	Attempts int64  `db:"attempts" json:"attempts"`
	Next     *int64 `db:"next" json:"next_ms,omitzero"`
	// Delivered is when the receiver took it. Status and Problem are those of the last attempt.
	Delivered *int64 `db:"delivered" json:"delivered_ms,omitzero"`
	Status    int64  `db:"status" json:"status,omitzero"`
	Problem   string `db:"problem" json:"problem,omitzero"`
}

// MaxPending bounds the deliveries that wait for one webhook. More are dropped: the receiver is away.
const MaxPending = 1000

// Emit queues an event for a webhook, once for each object, due at once.
func (t *Tx) Emit(hook, event, object, body string) (Delivery, error) {
	d := Delivery{ID: NewID(t.now()), Hook: hook, Event: event, Object: object, Body: body, Created: t.millis()}
	var waiting int
	err := t.row("SELECT COUNT(*) FROM deliveries WHERE hook = ? AND next IS NOT NULL", hook).Scan(&waiting)
	if err != nil || waiting >= MaxPending {
		return d, err
	}
	d.Next = &d.Created
	if err = insert(t, "deliveries", d); errors.Is(err, ErrExists) {
		err = nil
	}
	return d, err
}

// DueDeliveries returns the first due delivery of each of some webhooks.
func (t *Tx) DueDeliveries(now int64, limit int) ([]Delivery, error) {
	return list[Delivery](t, "deliveries", "WHERE id IN (SELECT MIN(id) FROM deliveries WHERE next <= ? GROUP BY hook) ORDER BY next LIMIT ?", now, limit)
}

// NextDue returns when the next delivery is due, nil if none waits.
func (t *Tx) NextDue() (at *int64, err error) {
	err = t.row("SELECT MIN(next) FROM deliveries").Scan(&at)
	return at, err
}

// Claim takes a delivery until a time: nobody else sends it before. It is ErrNotFound if somebody
// took it.
func (t *Tx) Claim(d *Delivery, until int64) error {
	if err := t.one("UPDATE deliveries SET next = ?, attempts = attempts + 1 WHERE id = ? AND next = ?", until, d.ID, *d.Next); err != nil {
		return err
	}
	d.Attempts++
	return nil
}

// Attempted records how an attempt ended.
func (t *Tx) Attempted(d *Delivery) error {
	return t.one("UPDATE deliveries SET next = ?, delivered = ?, status = ?, problem = ? WHERE id = ?", d.Next, d.Delivered, d.Status, d.Problem, d.ID)
}

// Deliveries lists the deliveries of a webhook, the latest first.
func (t *Tx) Deliveries(hook, before string, limit int) ([]Delivery, error) {
	return list[Delivery](t, "deliveries", "WHERE hook = ? AND (id < ? OR ? = '') ORDER BY id DESC LIMIT ?", hook, before, before, limit)
}

// ForgetDeliveries removes deliveries that ended and were made before a time (milliseconds).
func (t *Tx) ForgetDeliveries(before int64) error {
	return t.exec("DELETE FROM deliveries WHERE next IS NULL AND created < ?", before)
}
