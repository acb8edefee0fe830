package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kinds of bases.
const (
	MergeBase = "merge-base"
	Parent    = "parent"
	Revision  = "commit"
	Saved     = "file"
	Missing   = "none"
	Auto      = "auto" // how a base is asked for that follows from the repository
)

// Base is the version that figures are compared with.
type Base struct {
	// Kind is accepted, merge-base, parent, commit, file or none.
	Kind string `json:"kind"`
	// Commit is its hash, absent for accepted figures and files.
	Commit string `json:"commit,omitzero"`
	// Ref is what the merge base is with, or the name that the user gave.
	Ref string `json:"ref,omitzero"`
	// Why says why no better base was taken.
	Why string `json:"why,omitzero"`
}

// String says which base it is.
func (b *Base) String() string {
	short := b.Commit[:min(len(b.Commit), 10)]
	switch b.Kind {
	case MergeBase:
		return fmt.Sprintf("merge base with %s, commit %s", b.Ref, short)
	case Parent:
		return "parent of HEAD, commit " + short
	case Revision:
		return fmt.Sprintf("%s, commit %s", b.Ref, short)
	case Saved:
		return "profile " + b.Ref
	case Accepted:
		return "last accepted baselines"
	}
	return "none"
}

// trunks lists where CI services say which branch a change is for, and where branches usually are.
var (
	trunkVariables = []string{
		"GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "BITBUCKET_PR_DESTINATION_BRANCH",
		"SYSTEM_PULLREQUEST_TARGETBRANCH", "CHANGE_TARGET", "CI_TARGET_BRANCH", "CIRCLE_BASE_BRANCH",
	}
	trunkNames = []string{"origin/main", "origin/master", "main", "master"}
)

// trunk finds the branch that a change is for. The variables of the CI service come first, then
// what the clone says of the remote.
func (r *Repo) trunk(ctx context.Context, env func(string) string) (ref string, ok bool) {
	var list []string
	for _, v := range trunkVariables {
		if s := strings.TrimPrefix(env(v), "refs/heads/"); s != "" {
			list = append(list, "origin/"+s, s)
		}
	}
	if s, err := r.git(ctx, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"); err == nil {
		list = append(list, s)
	}
	for _, ref := range append(list, trunkNames...) {
		if _, err := r.Commit(ctx, ref); err == nil {
			return ref, true
		}
	}
	return "", false
}

// FindBase chooses the base. want is auto, accepted, merge-base, parent or a revision. repo is nil
// without git, and why says so.
//
// The choice of auto is the merge base with the branch that the change is for; on that branch HEAD
// for a working tree with changes, else its parent. Baselines that were accepted after this commit
// have precedence ([Store.Since]). Without a commit it is what was accepted last.
func FindBase(ctx context.Context, repo *Repo, why error, s *Store, want string, env func(string) string) (Base, error) {
	if repo == nil || repo.Head == "" {
		b := Base{Kind: Accepted, Why: "the repository has no commit yet"}
		if repo == nil {
			b.Why = why.Error()
		}
		switch {
		case want != Auto && want != Accepted:
			return b, fmt.Errorf("--base %s: %s", want, b.Why)
		case !s.hasAccepted():
			b.Kind = Missing
		}
		return b, nil
	}
	switch want {
	case Accepted:
		if !s.hasAccepted() {
			return Base{}, errors.New("--base accepted: no baseline was accepted: run opmeter gate accept MODEL --reason TEXT")
		}
		return Base{Kind: Accepted}, nil
	case MergeBase:
		return repo.mergeBase(ctx, env)
	case Parent:
		return repo.parent(ctx)
	case Auto:
		b, err := repo.auto(ctx, env)
		if err == nil || ctx.Err() != nil {
			return b, err
		}
		b = Base{Kind: Accepted, Why: err.Error()}
		if !s.hasAccepted() {
			b.Kind = Missing
		}
		return b, nil
	}
	commit, err := repo.Commit(ctx, want)
	return Base{Kind: Revision, Commit: commit, Ref: want}, err
}

// hasAccepted reports whether any baseline was accepted.
func (s *Store) hasAccepted() bool {
	return slices.ContainsFunc(s.Records, func(r Record) bool { return r.Kind == Accepted })
}

// Since keeps the records that an older store lacks.
func (s *Store) Since(old *Store) *Store {
	had := map[string]bool{}
	for i := range old.Records {
		had[old.Records[i].ID()] = true
	}
	out := &Store{Dir: s.Dir}
	for i := range s.Records {
		if !had[s.Records[i].ID()] {
			out.Records = append(out.Records, s.Records[i])
		}
	}
	return out
}

func (r *Repo) mergeBase(ctx context.Context, env func(string) string) (Base, error) {
	ref, ok := r.trunk(ctx, env)
	if !ok {
		return Base{}, fmt.Errorf("no branch found that this change is for%s: fetch it, or name the base with --base COMMIT", r.cut())
	}
	commit, err := r.MergeBase(ctx, "HEAD", ref)
	return Base{Kind: MergeBase, Commit: commit, Ref: ref}, err
}

func (r *Repo) parent(ctx context.Context) (Base, error) {
	commit, err := r.Commit(ctx, "HEAD^")
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("HEAD has no parent%s", r.cut())
	}
	return Base{Kind: Parent, Commit: commit}, err
}

func (r *Repo) auto(ctx context.Context, env func(string) string) (Base, error) {
	b, err := r.mergeBase(ctx, env)
	switch {
	case err != nil, b.Commit != r.Head:
		return b, err
	case r.Dirty(ctx):
		return Base{Kind: Revision, Commit: r.Head, Ref: "HEAD"}, nil
	}
	return r.parent(ctx)
}
