-- Times are milliseconds since 1970 in UTC. "deleted" is the time at which a row was moved to the
-- bin, from which it can come back. INTEGER is BIGINT in PostgreSQL, and TEXT is compared by bytes.

CREATE TABLE projects (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  description TEXT NOT NULL,
  created INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  deleted INTEGER
);

-- A series is what was measured how and where: its runs compare with each other over time. Changes
-- were sought up to the run "checked".
CREATE TABLE series (
  id TEXT PRIMARY KEY,
  project TEXT NOT NULL REFERENCES projects (id),
  kind TEXT NOT NULL,
  model TEXT NOT NULL,
  target TEXT NOT NULL,
  engine TEXT NOT NULL,
  machine TEXT NOT NULL,
  settings TEXT NOT NULL,
  newest TEXT NOT NULL,
  checked TEXT NOT NULL,
  UNIQUE (project, model, target, engine, machine, settings, kind)
);

CREATE INDEX series_to_check ON series (id) WHERE newest <> checked;

-- A run is one profile or study; "blob" is the SHA-256 of its file. "model_file" is the name of the
-- file of the model, empty if it is unknown. "output" is the SHA-256 of a model that the job wrote.
CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  project TEXT NOT NULL REFERENCES projects (id),
  series TEXT NOT NULL REFERENCES series (id),
  job TEXT NOT NULL UNIQUE,
  model_hash TEXT NOT NULL,
  model_file TEXT NOT NULL,
  output TEXT NOT NULL,
  branch TEXT NOT NULL,
  commit_id TEXT NOT NULL,
  pull TEXT NOT NULL,
  note TEXT NOT NULL,
  blob TEXT NOT NULL,
  created INTEGER NOT NULL,
  deleted INTEGER
);

CREATE INDEX runs_of_project ON runs (project, id);
CREATE INDEX runs_of_series ON runs (series, id);
CREATE INDEX runs_of_blob ON runs (blob);
CREATE INDEX runs_deleted ON runs (deleted) WHERE deleted IS NOT NULL;
CREATE INDEX runs_of_model ON runs (model_hash);
CREATE INDEX runs_of_output ON runs (output);
CREATE INDEX runs_of_branch ON runs (project, branch, id);
CREATE INDEX runs_of_commit ON runs (project, commit_id);

-- Figures of whole models, with the estimator of value and interval, such as median. Intervals that
-- are absent are NULL.
CREATE TABLE figures (
  run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  value DOUBLE PRECISION NOT NULL,
  low DOUBLE PRECISION,
  high DOUBLE PRECISION,
  estimator TEXT NOT NULL,
  measured BOOLEAN NOT NULL,
  PRIMARY KEY (run, name)
);

-- Words of names, notes and labels, in lower case, for the search.
CREATE TABLE words (
  word TEXT NOT NULL,
  run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  PRIMARY KEY (word, run)
);

CREATE INDEX words_of_run ON words (run, word);

CREATE TABLE tags (
  run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  PRIMARY KEY (run, name)
);

CREATE INDEX runs_of_tag ON tags (name, run);

-- Secrets are stored as SHA-256 only.
CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  project TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER,
  revoked INTEGER,
  used INTEGER
);

-- A share lets anyone with its link see the page of some runs, or the badge of a figure.
CREATE TABLE shares (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  runs TEXT NOT NULL,
  series TEXT NOT NULL,
  figure TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER,
  revoked INTEGER
);

CREATE INDEX shares_of ON shares (runs, series);

-- An alert is a change for the worse. "run" is the first one of the new level.
CREATE TABLE alerts (
  id TEXT PRIMARY KEY,
  project TEXT NOT NULL REFERENCES projects (id),
  series TEXT NOT NULL REFERENCES series (id),
  run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  figure TEXT NOT NULL,
  before_value DOUBLE PRECISION NOT NULL,
  after_value DOUBLE PRECISION NOT NULL,
  created INTEGER NOT NULL,
  acknowledged INTEGER,
  acknowledged_by TEXT NOT NULL,
  note TEXT NOT NULL,
  UNIQUE (run, figure)
);

CREATE INDEX alerts_of_series ON alerts (series, figure);

CREATE TABLE hooks (
  id TEXT PRIMARY KEY,
  project TEXT NOT NULL REFERENCES projects (id),
  url TEXT NOT NULL,
  secret TEXT NOT NULL,
  created INTEGER NOT NULL
);

CREATE INDEX hooks_of_project ON hooks (project);

-- Events for webhooks. "next" is when one is due, NULL at the end.
CREATE TABLE deliveries (
  id TEXT PRIMARY KEY,
  hook TEXT NOT NULL REFERENCES hooks (id) ON DELETE CASCADE,
  event TEXT NOT NULL,
  object TEXT NOT NULL,
  body TEXT NOT NULL,
  created INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  next INTEGER,
  delivered INTEGER,
  status INTEGER NOT NULL,
  problem TEXT NOT NULL,
  UNIQUE (hook, event, object)
);

CREATE INDEX deliveries_of_hook ON deliveries (hook, id);
CREATE INDEX deliveries_due ON deliveries (next);

CREATE TABLE audit (
  id TEXT PRIMARY KEY,
  who TEXT NOT NULL,
  what TEXT NOT NULL,
  object TEXT NOT NULL,
  address TEXT NOT NULL,
  created INTEGER NOT NULL
);

-- Which runs of a project are kept; "*" stands for all projects without a row. NULL is for ever.
CREATE TABLE retention (
  project TEXT PRIMARY KEY,
  branch TEXT NOT NULL,
  days INTEGER,
  last_runs INTEGER,
  pull_days INTEGER
);

-- Files that nothing referred to since a time.
CREATE TABLE unused_files (
  hash TEXT PRIMARY KEY,
  since INTEGER NOT NULL
);

-- Which projects may use a file: a token for one project uploaded it.
CREATE TABLE uploads (
  hash TEXT NOT NULL,
  project TEXT NOT NULL REFERENCES projects (id),
  PRIMARY KEY (hash, project)
);
