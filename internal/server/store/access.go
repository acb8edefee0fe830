package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// Role is what the owner of a token may do. Each role may do what those before it may.
type Role string

// The roles.
const (
	Read  Role = "read"  // look at results
	Start Role = "run"   // start jobs, push results
	Admin Role = "admin" // delete, tokens, webhooks
)

// Roles lists the roles from the least to the most.
var Roles = []Role{Read, Start, Admin}

// Token lets a program or a person use the server. Its secret is not stored.
type Token struct {
	ID      string `db:"id" json:"id"`
	Hash    string `db:"hash" json:"-"`
	Name    string `db:"name" json:"name"`
	Role    Role   `db:"role" json:"role"`
	Project string `db:"project" json:"project,omitzero"` // "" is all projects
	Created int64  `db:"created" json:"created_ms"`
	Expires *int64 `db:"expires" json:"expires_ms,omitzero"`
	Revoked *int64 `db:"revoked" json:"revoked_ms,omitzero"`
	Used    *int64 `db:"used" json:"used_ms,omitzero"`
}

// hash is what is stored of a secret.
func hash(secret string) string {
	h := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(h[:])
}

// secret makes a secret with a prefix that says what it is for.
func secret(prefix string) string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// AddToken adds a token and returns its secret, which cannot be had again.
func (t *Tx) AddToken(k Token) (Token, string, error) {
	s := secret("opm_")
	k.ID, k.Hash, k.Created = NewID(t.now()), hash(s), t.millis()
	return k, s, insert(t, "tokens", k)
}

// Tokens lists all tokens.
func (t *Tx) Tokens() ([]Token, error) { return list[Token](t, "tokens", "ORDER BY id") }

// TokenOf returns the valid token of a secret, ErrNotFound if there is none.
func (t *Tx) TokenOf(secret string) (Token, error) {
	return get[Token](t, "tokens", "WHERE hash = ? AND "+valid, hash(secret), t.millis())
}

// Revoke ends a token or a share.
func (t *Tx) Revoke(table, id string) error {
	if table != "tokens" && table != "shares" {
		return ErrNotFound
	}
	return t.one("UPDATE "+table+" SET revoked = ? WHERE id = ?", t.millis(), id)
}

// Share lets everyone with its link see the page of some runs, or the badge of a figure of a series.
type Share struct {
	ID      string `db:"id" json:"id"`
	Hash    string `db:"hash" json:"-"`
	Project string `db:"project" json:"project"`
	Runs    string `db:"runs" json:"runs,omitzero"` // ids with commas between
	Series  string `db:"series" json:"series,omitzero"`
	Figure  string `db:"figure" json:"figure,omitzero"`
	Created int64  `db:"created" json:"created_ms"`
	Expires *int64 `db:"expires" json:"expires_ms,omitzero"`
	Revoked *int64 `db:"revoked" json:"revoked_ms,omitzero"`
}

// AddShare adds a share and returns the secret of its link.
func (t *Tx) AddShare(v Share) (Share, string, error) {
	s := secret("")
	v.ID, v.Hash, v.Created = NewID(t.now()), hash(s), t.millis()
	return v, s, insert(t, "shares", v)
}

// valid selects what is neither revoked nor expired.
const valid = "revoked IS NULL AND (expires IS NULL OR expires > ?)"

// ShareOf returns the share of a secret, if it is valid.
func (t *Tx) ShareOf(secret string) (Share, error) {
	return get[Share](t, "shares", "WHERE hash = ? AND "+valid, hash(secret), t.millis())
}

// Share returns a share.
func (t *Tx) Share(id string) (Share, error) { return get[Share](t, "shares", "WHERE id = ?", id) }

// Shares lists the valid shares of some runs or of a series.
func (t *Tx) Shares(runs, series string) ([]Share, error) {
	return list[Share](t, "shares", "WHERE runs = ? AND series = ? AND "+valid+" ORDER BY id", runs, series, t.millis())
}

// Entry is a line of the audit log.
type Entry struct {
	ID      string `db:"id" json:"id"`
	Who     string `db:"who" json:"who"`
	What    string `db:"what" json:"what"`
	Object  string `db:"object" json:"object"`
	Address string `db:"address" json:"address,omitzero"`
	Created int64  `db:"created" json:"created_ms"`
}

type addressKey struct{}

// From notes the address that a request came from, for the audit log.
func From(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

// Log adds a line to the audit log. The address is that of [From].
func (t *Tx) Log(who, what, object string) error {
	address, _ := t.ctx.Value(addressKey{}).(string)
	return insert(t, "audit", Entry{ID: NewID(t.now()), Who: who, What: what, Object: object, Address: address, Created: t.millis()})
}

// Audit lists lines of the audit log, the latest first.
func (t *Tx) Audit(before string, limit int) ([]Entry, error) {
	return list[Entry](t, "audit", "WHERE id < ? OR ? = '' ORDER BY id DESC LIMIT ?", before, before, limit)
}
