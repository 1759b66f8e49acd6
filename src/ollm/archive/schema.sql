-- The schema of the archive as numbered steps, each after a line `-- step N`. A released step is never changed; a new
-- one is added. Everything is in the schema `ollm`. Row-level security decides who sees a row: the owner of its session,
-- and everyone who shares a team with the owner. Only the owner writes. Functions that a later step replaces are created
-- by that step only.

-- step 1: tables
CREATE TABLE ollm.sessions (
    session_id uuid PRIMARY KEY,
    owner name NOT NULL,
    writer text NOT NULL,
    host text NOT NULL,
    last_seq bigint NOT NULL DEFAULT 0,
    title text NOT NULL DEFAULT '',
    model text NOT NULL DEFAULT '',
    workspace text,
    origin text,
    start_time timestamptz NOT NULL DEFAULT now(),
    last_activity timestamptz NOT NULL DEFAULT now(),
    message_count bigint NOT NULL DEFAULT 0,
    token_count bigint NOT NULL DEFAULT 0,
    redacted boolean NOT NULL DEFAULT true,
    damaged text,
    pushed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sessions_by_owner ON ollm.sessions (owner, last_activity DESC);
CREATE TABLE ollm.records (
    session_id uuid NOT NULL REFERENCES ollm.sessions ON DELETE CASCADE,
    seq bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('head', 'message', 'call', 'file')),
    key text NOT NULL,
    position bigint NOT NULL,
    digest bytea NOT NULL,
    body bytea,
    PRIMARY KEY (session_id, seq),
    UNIQUE (session_id, kind, key)
);
CREATE TABLE ollm.messages (
    session_id uuid NOT NULL REFERENCES ollm.sessions ON DELETE CASCADE,
    number bigint NOT NULL,
    call text NOT NULL DEFAULT '',
    role text NOT NULL,
    at timestamptz NOT NULL,
    text text NOT NULL,
    words tsvector GENERATED ALWAYS AS (to_tsvector('simple', left(text, 100000))) STORED,
    PRIMARY KEY (session_id, number, call)
);
CREATE TABLE ollm.deletions (
    session_id uuid PRIMARY KEY,
    owner name NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT now()
);

-- step 2: row security
CREATE TABLE ollm.team_members (team text NOT NULL, member name NOT NULL, PRIMARY KEY (team, member));
CREATE FUNCTION ollm.viewer() RETURNS name LANGUAGE sql STABLE PARALLEL RESTRICTED AS $$
    SELECT CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role')::name END
$$;
CREATE FUNCTION ollm.list_visible_owners() RETURNS SETOF name
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT ollm.viewer()
    UNION
    SELECT other.member FROM ollm.team_members AS own
    JOIN ollm.team_members AS other USING (team) WHERE own.member = ollm.viewer()
$$;
ALTER TABLE ollm.sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE ollm.records ENABLE ROW LEVEL SECURITY;
ALTER TABLE ollm.messages ENABLE ROW LEVEL SECURITY;
ALTER TABLE ollm.deletions ENABLE ROW LEVEL SECURITY;
ALTER TABLE ollm.team_members ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON ollm.sessions FOR SELECT USING (owner IN (SELECT ollm.list_visible_owners()));
CREATE POLICY add ON ollm.sessions FOR INSERT WITH CHECK (owner = ollm.viewer());
CREATE POLICY change ON ollm.sessions FOR UPDATE USING (owner = ollm.viewer()) WITH CHECK (owner = ollm.viewer());
CREATE POLICY remove ON ollm.sessions FOR DELETE USING (owner = ollm.viewer());
CREATE POLICY see ON ollm.records FOR SELECT
    USING (EXISTS (SELECT FROM ollm.sessions AS s WHERE s.session_id = records.session_id));
CREATE POLICY own ON ollm.records
    USING (EXISTS (SELECT FROM ollm.sessions AS s WHERE s.session_id = records.session_id AND s.owner = ollm.viewer()));
CREATE POLICY see ON ollm.messages FOR SELECT
    USING (EXISTS (SELECT FROM ollm.sessions AS s WHERE s.session_id = messages.session_id));
CREATE POLICY own ON ollm.messages
    USING (EXISTS (SELECT FROM ollm.sessions AS s
        WHERE s.session_id = messages.session_id AND s.owner = ollm.viewer()));
CREATE POLICY own ON ollm.deletions USING (owner = ollm.viewer());
CREATE POLICY see ON ollm.team_members FOR SELECT USING (member = ollm.viewer());
CREATE FUNCTION ollm.add_person(person name, team text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA ollm TO %I', person);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ollm.sessions, ollm.records, ollm.messages, ollm.deletions'
        ' TO %I', person);
    EXECUTE format('GRANT SELECT ON ollm.team_members, ollm.schema_version TO %I', person);
    EXECUTE format('GRANT EXECUTE ON FUNCTION ollm.viewer(), ollm.list_visible_owners() TO %I', person);
    IF team IS NOT NULL THEN
        INSERT INTO ollm.team_members VALUES (team, person) ON CONFLICT DO NOTHING;
    END IF;
END $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ollm FROM PUBLIC;

-- step 3: search
CREATE INDEX messages_by_words ON ollm.messages USING gin (words) WITH (gin_pending_list_limit = 16384);
CREATE INDEX messages_by_time ON ollm.messages (at DESC, session_id, number DESC);
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_trgm') THEN
        CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA ollm;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'pg_trgm may not be created by this role: parts of words are found more slowly';
END $$;

-- step 4: leases
CREATE TABLE ollm.leases (
    session_id uuid PRIMARY KEY REFERENCES ollm.sessions ON DELETE CASCADE,
    holder text NOT NULL,
    host text NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    seen timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE ollm.leases ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON ollm.leases FOR SELECT
    USING (EXISTS (SELECT FROM ollm.sessions AS s WHERE s.session_id = leases.session_id));
CREATE POLICY own ON ollm.leases
    USING (EXISTS (SELECT FROM ollm.sessions AS s WHERE s.session_id = leases.session_id AND s.owner = ollm.viewer()));
CREATE OR REPLACE FUNCTION ollm.add_person(person name, team text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA ollm TO %I', person);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ollm.sessions, ollm.records, ollm.messages, ollm.deletions,'
        ' ollm.leases TO %I', person);
    EXECUTE format('GRANT SELECT ON ollm.team_members, ollm.schema_version TO %I', person);
    EXECUTE format('GRANT EXECUTE ON FUNCTION ollm.viewer(), ollm.list_visible_owners(), ollm.search_messages TO %I',
        person);
    IF team IS NOT NULL THEN
        INSERT INTO ollm.team_members VALUES (team, person) ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- step 5: own names
-- Every name is qualified: a function of the same name in the caller's search path must not say who the caller is. And a
-- deletion is each person's own: nobody else's row may stand in its way.
CREATE OR REPLACE FUNCTION ollm.viewer() RETURNS name LANGUAGE sql STABLE PARALLEL RESTRICTED AS $$
    SELECT CASE WHEN pg_catalog.current_setting('role') OPERATOR(pg_catalog.=) 'none' THEN session_user
        ELSE pg_catalog.current_setting('role')::pg_catalog.name END
$$;
ALTER TABLE ollm.deletions DROP CONSTRAINT deletions_pkey, ADD PRIMARY KEY (session_id, owner);

-- step 6: own words
-- The machine that sends a text splits it into words, as its own index does: paths and ideographs are several words.
ALTER TABLE ollm.messages ALTER COLUMN words DROP EXPRESSION;
UPDATE ollm.messages SET words = array_to_tsvector(ARRAY(
    SELECT DISTINCT left(word, 200)
    FROM regexp_split_to_table(lower(regexp_replace(text,
        '([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f])', ' \1 ', 'g')),
        '[[:space:][:punct:][:cntrl:]]+') AS word
    WHERE word <> ''));

-- step 7: parts of words
-- Parts of words are searched in the distinct words of a text, not in the text: a third of the work when it is stored.
-- lz4, if the server has it, compresses four times as fast. A text that a caller chose, and could make slow or let fail,
-- is compared only with rows the caller may see: neither an error nor the time it takes reveals the rest. Last,
-- everybody who was added before gets what `add_person` gives now.
CREATE FUNCTION ollm.join_words(words tsvector) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
    SELECT ' ' OPERATOR(pg_catalog.||) pg_catalog.array_to_string(pg_catalog.tsvector_to_array(words), ' ')
        OPERATOR(pg_catalog.||) ' '
$$;
DROP INDEX IF EXISTS ollm.messages_by_trigrams;
DO $$
BEGIN
    EXECUTE (SELECT format('CREATE INDEX messages_by_trigrams ON ollm.messages'
            ' USING gin (ollm.join_words(words) %I.gin_trgm_ops) WITH (gin_pending_list_limit = 32768)', n.nspname)
        FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm');
EXCEPTION WHEN null_value_not_allowed THEN
    NULL;  -- no pg_trgm
END $$;
DO $$
BEGIN
    EXECUTE 'ALTER TABLE ollm.records ALTER COLUMN body SET COMPRESSION lz4';
    EXECUTE 'ALTER TABLE ollm.messages ALTER COLUMN text SET COMPRESSION lz4,'
        ' ALTER COLUMN words SET COMPRESSION lz4';
EXCEPTION WHEN syntax_error OR feature_not_supported OR invalid_parameter_value THEN
    NULL;  -- PostgreSQL 13, or one that was built without lz4
END $$;
DROP FUNCTION IF EXISTS ollm.search_messages(text, integer, text, timestamptz);
DROP FUNCTION IF EXISTS ollm.search_messages(text, integer, text, timestamptz, text[], text[], boolean);
CREATE FUNCTION ollm.search_messages(wanted text, max_hits integer, of_role text DEFAULT NULL,
    since timestamptz DEFAULT NULL, of_words text[] DEFAULT '{}', of_phrases text[] DEFAULT '{}',
    with_tasks boolean DEFAULT false, of_part text DEFAULT '%')
RETURNS TABLE (session_id uuid, number bigint, call text, role text, at timestamptz, title text, owner name, host text,
    excerpt text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    visible name[] := ARRAY(SELECT ollm.list_visible_owners());
    part text := CASE WHEN strpos(of_part, '\') = 0 THEN of_part ELSE '%' END;
    query tsquery := (SELECT string_agg('''' || replace(replace(word, '\', '\\'), '''', '''''') || '''', ' & ')
        FROM unnest(of_words) AS word WHERE word <> '')::tsquery;
    first text := lower(split_part(btrim(wanted), ' ', 1));
    pattern text := '%' || replace(replace(replace(wanted, '\', '\\'), '%', '\%'), '_', '\_') || '%';
BEGIN
    max_hits := least(greatest(max_hits, 0), 1000);
    IF query IS NOT NULL THEN
        RETURN QUERY
            SELECT h.session_id, h.number, h.call, h.role, h.at, h.title, h.owner, h.host,
                substr(h.text, greatest(strpos(lower(h.text), first) - 100, 1), 600)
            FROM (
                SELECT m.session_id, m.number, m.call, m.role, m.at, s.title, s.owner, s.host, m.text
                FROM ollm.messages AS m JOIN ollm.sessions AS s USING (session_id)
                WHERE s.owner = ANY(visible) AND m.words @@ query
                    AND (with_tasks OR s.origin IS DISTINCT FROM 'task')
                    AND (of_role IS NULL OR m.role = of_role) AND (since IS NULL OR m.at >= since)
                    AND CASE WHEN s.owner = ANY(visible) THEN NOT EXISTS (SELECT FROM unnest(of_phrases[1:64]) AS phrase
                        WHERE strpos(lower(m.text), phrase) = 0) ELSE false END
                ORDER BY m.at DESC, m.session_id, m.number DESC LIMIT max_hits) AS h;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    IF length(wanted) < 3 THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT h.session_id, h.number, h.call, h.role, h.at, h.title, h.owner, h.host,
            substr(h.text, greatest(strpos(lower(h.text), first) - 100, 1), 600)
        FROM (
            SELECT m.session_id, m.number, m.call, m.role, m.at, s.title, s.owner, s.host, m.text
            FROM ollm.messages AS m JOIN ollm.sessions AS s USING (session_id)
            WHERE s.owner = ANY(visible) AND ollm.join_words(m.words) ILIKE part
                AND CASE WHEN s.owner = ANY(visible) THEN m.text ILIKE pattern ELSE false END
                AND (with_tasks OR s.origin IS DISTINCT FROM 'task')
                AND (of_role IS NULL OR m.role = of_role) AND (since IS NULL OR m.at >= since)
            ORDER BY m.at DESC, m.session_id, m.number DESC LIMIT max_hits) AS h;
END $$;
REVOKE ALL ON FUNCTION ollm.search_messages FROM PUBLIC;
DO $$
DECLARE
    person name;
BEGIN
    FOR person IN SELECT DISTINCT grantee FROM information_schema.role_table_grants
        WHERE table_schema = 'ollm' AND table_name = 'records' AND privilege_type = 'INSERT'
            AND grantee <> current_user AND grantee <> 'PUBLIC'
    LOOP
        PERFORM ollm.add_person(person);
    END LOOP;
END $$;
