"""Every diagnostic code, as data: one row each, and one page of Markdown each in `pages/`.

`E` codes are errors found before or around a run, `W` codes are warnings, and `X` codes stand for the kinds of
errors a single record can have. An `X` row also answers to the name that dead letters carry.

>>> lookup("e200").title, lookup("division_by_zero").code, lookup("E999")
('type error', 'X002', None)
>>> suggest("divide_by_zero"), suggest("E20O")
('division_by_zero', 'E200')
"""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.core.diagnostics import Severity
from clinker_spark.core.suggest import nearest


@dataclass(frozen=True, slots=True)
class Entry:
    """One code: what it is called, what it means and what to do about it, each in one sentence.

    `kind` is the name of a record error in the error channel and in dead letters; other codes have none.
    """

    code: str
    title: str
    meaning: str
    action: str
    kind: str | None = None

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self.code.startswith("W") else Severity.ERROR


ENTRIES: tuple[Entry, ...] = (
    # ------------------------------------------------------------ files, keys and values, the graph of nodes
    Entry(
        "E000",
        "not YAML",
        "A file is not YAML, or uses a part of YAML that has no meaning here.",
        "Mend the marked place: most often indentation, a tab, or a text that needs quotes.",
    ),
    Entry(
        "E001",
        "two nodes with one name",
        "Two nodes have the same name.",
        "Rename one of them.",
    ),
    Entry(
        "E002",
        "node reads itself",
        "The input of a node is the node itself.",
        "Write the name of the node whose records it should read.",
    ),
    Entry(
        "E003",
        "nodes in a circle",
        "Nodes read each other in a circle, so that none could run first.",
        "Let one of them read a node outside the circle.",
    ),
    Entry(
        "E004",
        "unknown input",
        "A node reads a node or a port that does not exist, or that has no records to read.",
        "Take the suggested name.",
    ),
    Entry(
        "E005",
        "unknown key",
        "A mapping has a key that nothing reads.",
        "Take the suggested spelling, or move the key to where it belongs.",
    ),
    Entry(
        "E006",
        "missing key",
        "A key is missing that has no default.",
        "Add it.",
    ),
    Entry(
        "E007",
        "value cannot be used",
        "A value is of the wrong kind, is not one of those allowed, or does not fit another one.",
        "Write one of the values that the message names.",
    ),
    Entry(
        "E008",
        "unknown node type",
        "`type:` of a node names no type that exists.",
        "Take the suggested type.",
    ),
    Entry(
        "E009",
        "not supported yet",
        "The file uses a feature that this version does not have.",
        "Remove it, or do the same with the nodes there are.",
    ),
    Entry(
        "E010",
        "dot in a name",
        "The name of a node or of a branch has a dot in it.",
        "Write `_` instead.",
    ),
    Entry(
        "E011",
        "log rule without a rhythm",
        "A log rule for records does not say how often it writes, or another one does.",
        "Add `every:` to rules with `when: per_record`, and to no others.",
    ),
    Entry(
        "E012",
        "key given twice",
        "A mapping has the same key two times, and only one of the values could be meant.",
        "Remove one of them.",
    ),
    Entry(
        "E013",
        "not TOML",
        "The file `clinker.toml` is not TOML.",
        "Mend the marked place.",
    ),
    Entry(
        "E014",
        "variable declared wrongly",
        "A variable has a name that cannot be used, a default of another type, or two declarations.",
        "Correct the declaration.",
    ),
    Entry(
        "E015",
        "variable cannot be set",
        "A value given on the command line names no variable, or is not of its type.",
        "Write `--set vars.name=value` with a declared name and a value of its type.",
    ),
    Entry(
        "E016",
        "streams that do not fit",
        "The inputs of a merge have different columns, or a column has types that do not go together.",
        "Emit the missing column, or convert one of them, in a transform before the merge.",
    ),
    Entry(
        "E017",
        "validation cannot be used",
        "A validation names no check that exists, or lacks something that the check needs.",
        "Take the suggested check and its arguments, or write a CXL condition.",
    ),
    Entry(
        "E018",
        "setting of Spark cannot be read",
        "A `--conf` on the command line is not of the form key=value.",
        "Write `--conf spark.sql.shuffle.partitions=8`.",
    ),
    Entry(
        "E019",
        "not a file of dead letters",
        "A file is not one of dead letters, or its records cannot be replayed through this pipeline.",
        "Name a file that a run of the pipeline wrote to `error_handling.dlq.path`.",
    ),
    Entry(
        "E020",
        "output cannot be added to",
        "`clinker dlq replay --append` cannot add records to an output.",
        "Replay without `--append`.",
    ),
    Entry(
        "E025",
        "Spark cannot start",
        "There is no Java, an old one, no temporary folder, or the system allows too few open files.",
        "Install Java 17, or raise the limit that the message names.",
    ),
    # ------------------------------------------------------------ compositions, retired keys, sources
    Entry(
        "E101",
        "composition cannot be used",
        "A file is not a composition where one is expected, or the ports it declares cannot be used.",
        "Give the file a `_compose:` section with name, inputs and outputs, and names of ports that are words.",
    ),
    Entry(
        "E102",
        "output port of nothing",
        "An output port of a composition names a node or a branch that its body does not have.",
        "Write the name of a node of the body.",
    ),
    Entry(
        "E103",
        "composition call that does not fit",
        "A composition cannot be found, or its call names a port or a parameter that it does not have.",
        "Correct the path, or take the suggested name.",
    ),
    Entry(
        "E104",
        "composition call that lacks something",
        "A call of a composition leaves a port or a required parameter open, or gives it what it does not take.",
        "Give the composition what its `_compose:` section asks for.",
    ),
    Entry(
        "E107",
        "compositions in a circle",
        "A composition uses itself, directly or through others.",
        "Let one of them end without using the other.",
    ),
    Entry(
        "E111",
        "empty composition",
        "A composition has no nodes.",
        "Add at least one node to `nodes:`.",
    ),
    Entry(
        "E112",
        "compositions too deep",
        "Compositions use each other more than sixteen levels deep.",
        "Flatten them.",
    ),
    Entry(
        "E119",
        "date_locale is not supported",
        "`pipeline.date_locale` asks for names of months and days in another language.",
        "Remove the key; give dates a format in numbers.",
    ),
    Entry(
        "E124",
        "log rules in files are not supported",
        "A pipeline names a file of log rules.",
        "Write the rules in the `log:` of a transform.",
    ),
    Entry(
        "E125",
        "include_provenance is not supported",
        "`pipeline.include_provenance` has no effect.",
        "Remove the key; set `write_meta: true` on an output.",
    ),
    Entry(
        "E153",
        "correlation key without a column",
        "`correlation_key` of a source names a column that its schema does not have.",
        "Take the suggested column, or add it to the schema.",
    ),
    Entry(
        "E154",
        "watermark without a column",
        "`watermark.column` of a source names a column that its schema does not have.",
        "Take the suggested column, or add it to the schema.",
    ),
    Entry(
        "E155",
        "watermark on a column that is no time",
        "The column of a watermark is neither a date nor a date_time.",
        "Declare the column as `date_time`, with a `format` if it needs one.",
    ),
    Entry(
        "E156",
        "windows without a time",
        "An aggregate has a `time_window`, and records that reach it have no time.",
        "Add `watermark: { column: ... }` to the sources that the message names.",
    ),
    Entry(
        "E157",
        "schema file cannot be used",
        "A schema is given as the path of a file that cannot be read or has no columns.",
        "Correct the path, which starts from the folder of the pipeline, or list the columns in the pipeline.",
    ),
    Entry(
        "E158",
        "numeric is not a column type",
        "A schema declares a column as `numeric`, which only means 'Int or Float, not decided yet' while types are "
        "inferred.",
        "Declare the column as `int`, `float` or `decimal(scale)`.",
    ),
    Entry(
        "E164",
        "init transform feeds a node",
        "A node reads a transform with `phase: init`, which runs before everything else and only writes variables.",
        "Read what the transform reads, or remove `phase: init`.",
    ),
    Entry(
        "E171",
        "variable read before it is written",
        "A node reads a variable that a transform declares which is not upstream of it.",
        "Read it downstream of the transform that writes it, or give that transform `phase: init`.",
    ),
    Entry(
        "E172",
        "variable of which source",
        "A node that gets records of several sources reads a variable of a source, and does not say of which.",
        "Name the source: `$source.orders.day` instead of `$source.day`.",
    ),
    Entry(
        "E173",
        "variable that a composition may not read",
        "A node of a composition reads a variable of the pipeline around it that `scoped_vars` does not list.",
        "List the variable with its type under `scoped_vars` of the composition.",
    ),
    Entry(
        "E174",
        "variable that a composition lacks",
        "A composition lists a variable under `scoped_vars` that the pipeline around it does not declare, or declares "
        "with another type.",
        "Declare the variable in a transform of the pipeline, with the type that the composition wants.",
    ),
    Entry(
        "E175",
        "init transform reads a later variable",
        "A transform with `phase: init` reads a variable that is written after all init transforms have run.",
        "Write the variable in a transform with `phase: init`, or remove `phase: init` from the reader.",
    ),
    # ------------------------------------------------------------ programs, sources, what is given to a command, limits
    Entry(
        "E15Y",
        "streaming with retraction",
        "An aggregate that must be able to take records back has `strategy: streaming`.",
        "Write `strategy: auto`, or add the correlation keys to `group_by`.",
    ),
    Entry(
        "E200",
        "type error",
        "An expression uses a value in a way its type does not allow.",
        "Convert one side (`.to_int()`, `.to_string()`, ...) or correct the type in the schema.",
    ),
    Entry(
        "E201",
        "missing schema",
        "A source has no schema, or one without columns.",
        "List the columns with their types.",
    ),
    Entry(
        "E202",
        "syntax error",
        "The text of the program does not follow the grammar of CXL.",
        "Mend the marked place; the parser goes on after it, so one run shows every syntax error.",
    ),
    Entry(
        "E203",
        "unknown name",
        "A name is not a field, a `let`, an earlier emit, a method, a function or a system variable.",
        "Take the suggested spelling, or add the field to the schema.",
    ),
    Entry(
        "E204",
        "running total",
        "A program reads a count of the records so far, which has no fixed value in a parallel run.",
        "Take the total from the run report, or count with an aggregate.",
    ),
    Entry(
        "E210",
        "several matchers",
        "A source says in more than one way which files to read.",
        "Keep one of `path`, `glob`, `regex` and `paths`.",
    ),
    Entry(
        "E211",
        "no matcher",
        "A source does not say which files to read.",
        "Add one of `path`, `glob`, `regex` and `paths`.",
    ),
    Entry(
        "E212",
        "pattern cannot be used",
        "A glob pattern is not well formed.",
        "Close the brackets, and let `**` stand alone between slashes.",
    ),
    Entry(
        "E213",
        "regular expression cannot be used",
        "The regular expression of a source is not well formed.",
        "Mend the expression; a backslash keeps a character from being special.",
    ),
    Entry(
        "E214",
        "duration cannot be read",
        "A value is not a duration or not a date.",
        "Write a whole number and a unit, such as `30s`, `5m`, `2h` or `7d`.",
    ),
    Entry(
        "E215",
        "size cannot be read",
        "A value is not a number of bytes, or is outside what is allowed.",
        "Write bytes, or a number and a unit such as `512M` or `10MB`.",
    ),
    Entry(
        "E216",
        "no file matches",
        "A source finds no file to read.",
        "Correct the pattern, or say with `files.on_no_match` that no file is fine.",
    ),
    Entry(
        "E218",
        "take_first and take_last",
        "`files` of a source asks for the first and for the last files.",
        "Keep one of the two.",
    ),
    Entry(
        "E224",
        "file cannot be read",
        "A file named on the command line does not exist, may not be read, or is not UTF-8 text.",
        "Check the path and its permissions, and save the file as UTF-8.",
    ),
    Entry(
        "E225",
        "unusable record",
        "A record given to a command is not a JSON object, or a `--field` is not of the form `name=value`.",
        'Write `--record \'{"name": "value"}\'` or `--field name=value`.',
    ),
    Entry(
        "E226",
        "unusable schema",
        "A schema cannot be read, is not made of column names and types, names a type that does not exist, or declares "
        "columns that do not fit together.",
        "Write one `column: type` per line, or a list of columns; the message says what is wrong with one.",
    ),
    Entry(
        "E227",
        "module cannot be used",
        "A module named by `use` was not found, imports itself through others, or is too large.",
        "Check the path under the rules folder and the imports between the modules.",
    ),
    Entry(
        "E228",
        "header does not fit",
        "The header of a data file lacks a declared column, names one twice, has one that may not be there, or is "
        "missing altogether.",
        "Correct the header or the schema; `source_name` says what a column is called in the file.",
    ),
    Entry(
        "E229",
        "data file cannot be read",
        "A file that a source reads does not exist, may not be read, or is not compressed as its name says.",
        "Check the path and its permissions, and set `compression` if the name of the file does not tell.",
    ),
    Entry(
        "E238",
        "name cannot be written",
        "A column has a name that the file format of an output cannot hold, or that hides another column in it.",
        "Give the column another name in the file: `mapping: [new_name: column]`.",
    ),
    Entry(
        "E246",
        "data file is damaged",
        "A file that a source reads cannot be read to its end: it is damaged, or lacks the part with the records.",
        "Correct the file, or the format and `record_path` of the source.",
    ),
    Entry(
        "E247",
        "column of another type",
        "A file that describes its own columns has one in a type that cannot be read as the declared one.",
        "Declare the type that the file has, and convert the values in a transform.",
    ),
    Entry(
        "E248",
        "file on a remote storage",
        "A source names a file on a remote storage that its format cannot be read from, or an output is to go there.",
        "Mount the storage and give the mounted path, or keep the data as Parquet.",
    ),
    # ------------------------------------------------------------ combine, memory, outputs and dead letters
    Entry(
        "E300",
        "number of inputs",
        "A combine has fewer than two inputs, or more than eight.",
        "Give it two to eight inputs.",
    ),
    Entry(
        "E301",
        "name of an input",
        "An input of a combine has a name that programs cannot use.",
        "Name it with a word that is not `pipeline`, `window`, `meta` or `doc`.",
    ),
    Entry(
        "E303",
        "condition of a combine",
        "The condition of a combine is not true or false.",
        "Compare something: `orders.product == products.code`.",
    ),
    Entry(
        "E304",
        "unknown column in a condition",
        "The condition of a combine names a column that no input has, or names one without its input.",
        "Write input.column, with a column of that input.",
    ),
    Entry(
        "E305",
        "inputs that are not connected",
        "Nothing in the condition of a combine compares an input with those that are joined already.",
        "Add a comparison between the input and another one.",
    ),
    Entry(
        "E306",
        "unknown driver",
        "`drive` of a combine names no input.",
        "Take one of the names in `input:`.",
    ),
    Entry(
        "E307",
        "unknown input of a combine",
        "An input of a combine is a node that does not exist.",
        "Take the suggested name.",
    ),
    Entry(
        "E308",
        "unknown column in the program of a combine",
        "The program of a combine names a column that no input has, or names one without its input.",
        "Write input.column, with a column of that input.",
    ),
    Entry(
        "E309",
        "combine without columns",
        "The program of a combine emits nothing, so its records would have no columns.",
        "Emit the columns that you want.",
    ),
    Entry(
        "E311",
        "program for collected matches",
        "A combine with `match: collect` has a program.",
        'Write `cxl: ""`, and compute in a transform after it.',
    ),
    Entry(
        "E312",
        "memory limit below what Spark needs",
        "`memory.limit` of the pipeline is so small that Spark cannot start.",
        "Write a larger limit; the message says how large.",
    ),
    Entry(
        "E313",
        "nothing to search by",
        "The condition of a combine compares its inputs, but by neither an equality nor a range.",
        "Add an equality or a range between columns of two inputs.",
    ),
    Entry(
        "E315",
        "too many records failed, or merged sources disagree",
        "The share of records that failed has reached `dlq.max_rate`; or the sources of a merge have different "
        "`on_unmapped` or `correlation_key`.",
        "Look at the records with a higher `max_rate`; or give the merged sources the same settings.",
    ),
    Entry(
        "E316",
        "too many records of a source failed",
        "The share of a source's records that failed has reached its `max_rate`; nothing was written.",
        "Look at the records with a higher `max_rate`, and compare the schema with the files.",
    ),
    Entry(
        "E317",
        "dead letters of an unknown source",
        "`dlq.per_source` names a source that does not exist.",
        "Take the suggested name.",
    ),
    Entry(
        "E318",
        "dead-letter settings",
        "A rate of dead letters is not above 0 and at most 1, or two kinds of dead letters go to one file.",
        "Write a rate such as `0.05` or `5%`, and give each file one writer.",
    ),
    Entry(
        "E319",
        "record without a match",
        "A record has no match, and `on_miss` of the combine is `error`.",
        "Add what is missing, or write `on_miss: null_fields` or `skip`.",
    ),
    Entry(
        "E322",
        "two writers of one file",
        "Two outputs, or an output and the dead letters, are written to one path, or one into the folder of another.",
        "Give each its own path.",
    ),
    Entry(
        "E324",
        "resume threshold out of range",
        "`memory.resume_threshold` does not lie between 0 and 0.80.",
        "Write a fraction below 0.80; 0.70 is the default.",
    ),
    Entry(
        "E325",
        "too many pairs",
        "A combine made more records than `max_output_rows` allows.",
        "Look for keys that many records share, or raise the limit.",
    ),
    Entry(
        "E327",
        "range over values that have no axis",
        "A combine has no equality, and its ranges are over texts or values of any type.",
        "Compare numbers, dates or times, or add an equality.",
    ),
    Entry(
        "E328",
        "keys of different types",
        "An equality of a combine compares keys whose types are never equal.",
        "Convert one of them.",
    ),
    Entry(
        "E329",
        "which record is the latest",
        "The condition of a combine with `match: latest` does not say which records are not too late.",
        "Write one comparison `build.time <= driver.time`; everything else must be equalities.",
    ),
    Entry(
        "E360",
        "array_paths was replaced",
        "A source uses `array_paths`.",
        "Read the array as a value and use `emit each` in a transform.",
    ),
    Entry(
        "E363",
        "record path cannot be used",
        "`record_path` is not a path in the form of its file format.",
        "JSON: keys with dots (`result.items`). XML: elements with slashes (`catalog/product`).",
    ),
    Entry(
        "E364",
        "mapping cannot be used",
        "`mapping` of an output is empty, writes a column twice, or uses one that is excluded.",
        "List each column once: `- column` or `- new_name: column`.",
    ),
    Entry(
        "E365",
        "mapping of nothing",
        "`mapping` of an output names a column that does not reach the output.",
        "Take the suggested column, or emit it before.",
    ),
    Entry(
        "E367",
        "names of split files",
        "`split.naming` does not give every file a name of its own.",
        "Use exactly one `{seq:04}`, with `{stem}` and `{ext}` if you like.",
    ),
    Entry(
        "E368",
        "too many values of the wrong type",
        "More records than `type_error_threshold` allows have values that cannot be read as their declared types; "
        "nothing was written.",
        "Correct the schema, or the files.",
    ),
    Entry(
        "E373",
        "log condition is none",
        "The `condition` of a log rule is not one expression that is true or false.",
        "Write a comparison, such as `amount > 1000`.",
    ),
    Entry(
        "E374",
        "log field without a column",
        "`fields` of a log rule names a column that the incoming records do not have.",
        "Take the suggested column. What the transform itself emits is not there yet.",
    ),
    Entry(
        "E375",
        "one event with different fields",
        "Two log rules have the same `name` and different `fields`.",
        "Give both the same fields, or one of them another name.",
    ),
    # ------------------------------------------------------------ running
    Entry(
        "E401",
        "output cannot be written",
        "The path of an output, or of the dead letters, cannot be written to; nothing was published.",
        "Check the path and the permissions of its folder.",
    ),
    Entry(
        "E402",
        "Spark failed",
        "Spark ended a job for a reason that has no code of its own; nothing was published.",
        "Run again with `CLINKER_DEBUG=1` to see all that Spark said.",
    ),
    Entry(
        "E405",
        "disk full",
        "There is no space left on a disk that the run writes to; nothing was published.",
        "Free some space, or put Spark's temporary data on another disk.",
    ),
    Entry(
        "E406",
        "output is there already",
        "An output with `if_exists: error` is there already.",
        "Remove it, run with `--force`, or write another `if_exists`.",
    ),
    Entry(
        "E407",
        "source_name of several sources",
        "`{source_name}` in the path of an output does not say which source it means.",
        "Write `{source_name:node}`.",
    ),
    Entry(
        "E408",
        "group larger than a file",
        "A group of a split output does not fit one file, and `oversize_group` does not allow that.",
        "Allow larger files, or choose another `group_key`.",
    ),
    Entry(
        "E409",
        "a record failed",
        "A record failed, and the strategy is `fail_fast`; nothing was written.",
        "Correct the record, or write `strategy: continue` and a path for dead letters.",
    ),
    Entry(
        "E410",
        "out of memory",
        "Spark ran out of memory, or its JVM is gone; nothing was published.",
        "Give Spark more memory, or use fewer tasks at once.",
    ),
    Entry(
        "E411",
        "taking records back does not end",
        "Records fail again and again while groups are held back and totals made without them; nothing was written.",
        "Look for a check that compares records with each other, so that one failure makes the next.",
    ),
    Entry(
        "E412",
        "the numbers of a run do not agree",
        "Records were read that are neither written, nor dead letters, nor left out by a node; nothing was published.",
        "Run the pipeline again; if the error comes back, report it with the message.",
    ),
    Entry(
        "E420",
        "outputs are in use",
        "Another run writes the same outputs, and did not end while this one waited; nothing was published.",
        "Wait until the other run is done, or give this one outputs of its own.",
    ),
    Entry(
        "E421",
        "folder is not clinker's",
        "A folder output would replace a folder with something in it that this pipeline did not write, or that changed "
        "since.",
        "Write to a folder of its own, or replace all of it with `--force`.",
    ),
    Entry(
        "E422",
        "not a dead-letter file",
        "The path of the dead letters leads to a file that is none of dead letters, and would be replaced or removed.",
        "Give the dead letters a path of their own, or run with `--force`.",
    ),
    Entry(
        "E423",
        "outputs of two runs",
        "Publishing failed in the middle, and what was there before could not be put back.",
        "See to the cause, then finish it with `clinker recover`.",
    ),
    Entry(
        "E424",
        "unfinished publication",
        "An earlier run stopped while it published the same outputs, and this run cannot finish it.",
        "See to the cause, then run `clinker recover` on the folder.",
    ),
    Entry(
        "E425",
        "not a file to write",
        "The path of an output leads to something that can neither be replaced nor take what the output writes.",
        "Write to a file; pipes and devices take single files.",
    ),
    Entry(
        "E430",
        "output replaces what is read",
        "An output, or the dead letters, would be written over an input, the pipeline itself, or a file it is made of.",
        "Write it somewhere else.",
    ),
    Entry(
        "E431",
        "two inputs, one output",
        "The path of an output gives the records of two input files the same name.",
        "Write `{source_path}` instead of `{source_file}`, or rename one of the files.",
    ),
    Entry(
        "E432",
        "path leaves its folder",
        "The value of a token, such as `--batch-id` or the name of an input, leads out of the folder before the token.",
        "Give the run another name, or write the folder in the path itself.",
    ),
    Entry(
        "E433",
        "name that no file can have",
        "A path is too long, has characters that cannot be printed, or a part that is empty or stands for a folder.",
        "Write another path; the message says what is wrong with this one.",
    ),
    Entry(
        "E434",
        "input changed while it was read",
        "An input was replaced, cut, extended, written to or removed after it was chosen; nothing was published.",
        "Run again when nobody writes to it.",
    ),
    Entry(
        "E435",
        "input is no file",
        "An input is a pipe, a socket or a device, and records may have to be read more than once.",
        "Write what comes from it to a file, and read that.",
    ),
    Entry(
        "E436",
        "records of no single file",
        "An output wants one file for each input file, and its records are made of several.",
        "Write a path without `{source_file}` and `{source_path}`.",
    ),
    Entry(
        "E450",
        "file is not in its declared order",
        "A file of a source is not sorted as `sort_order` says, and `on_unsorted` is `error`.",
        "Sort the file, correct `sort_order`, or write `on_unsorted: warn`.",
    ),
    Entry(
        "E451",
        "streaming without an order",
        "An aggregate has `strategy: streaming`, and its records are not known to be sorted by its groups.",
        "Write `strategy: auto`, or declare the `sort_order` of the source.",
    ),
    Entry(
        "E452",
        "compressed file is damaged",
        "A compressed file of a source ends too early, or its bytes are wrong.",
        "Get the file again; `gzip -t`, `bzip2 -t` or `zstd -t` tests it.",
    ),
    Entry(
        "E453",
        "header with an open quote",
        "The header of a CSV file has a quote that nobody closed, so that its columns cannot be told.",
        "Close the quote in the file, or set `options.quote_char`.",
    ),
    Entry(
        "E454",
        "key of a broken record cannot be read",
        "Records failed before their correlation key could be read, and `unreadable_key` is `stop`.",
        "Correct the lines, or write `unreadable_key: warn`.",
    ),
    Entry(
        "E456",
        "dead letter cannot be replayed",
        "A dead letter was edited in its cells and in its line, which differ, or does not fit the file of its source.",
        "Edit the cells or the line, and leave the other as it is.",
    ),
    Entry(
        "E458",
        "letters need records of other sources",
        "Dead letters cannot be fed without records that were written already.",
        "Correct the input files, and run the pipeline again.",
    ),
    Entry(
        "E459",
        "replayed letters are not known",
        "The file that says which dead letters were added to outputs cannot be read.",
        "Restore the file; remove it if no letter was added yet.",
    ),
    # ------------------------------------------------------------ queries
    Entry(
        "E700",
        "not a query program",
        "A query program cannot be read: a clause, a bracket or a word is missing or stands in the wrong place.",
        "Mend the marked place; the order of clauses is from, join, where, group by, sort by, skip, take, select.",
    ),
    Entry(
        "E701",
        "unknown name in a query",
        "A query uses a variable, field, function, method or type that does not exist.",
        "Take the suggested spelling, or define the name first.",
    ),
    Entry(
        "E702",
        "type error in a query",
        "A query applies something to a value of a type that it does not take.",
        "Convert the value, or compare things of one type.",
    ),
    Entry(
        "E703",
        "join condition is not true or false",
        "The condition after `on` is a value that can never be true or false.",
        "Compare a field of one side with a field of the other.",
    ),
    Entry(
        "E704",
        "aggregate outside a group",
        "An aggregate such as `sum` stands where there is one row, not many.",
        "Group the rows first, or give the aggregate a list or a query.",
    ),
    Entry(
        "E705",
        "query failed while it ran",
        "A query met a value that it cannot go on with.",
        "Look at the marked expression and at the value in the message.",
    ),
    Entry(
        "E706",
        "expectation does not hold",
        "An `expect` of a query program is false.",
        "Compare the two values in the message.",
    ),
    Entry(
        "E707",
        "file of a query cannot be used",
        "A file that a query loads or saves cannot be read or written, or its format is not known.",
        "Check the path, and name the format if the file's ending does not say it.",
    ),
    Entry(
        "E708",
        "no Spark form",
        "An expression of a query over a file or table cannot run on Spark.",
        "Write it with operators, methods and aggregates, or move it out of the query.",
    ),
    Entry(
        "E709",
        "not a list",
        "A query, a set operator, a loop or a save is given something that has no rows.",
        "Give it a list, a query, a file or a table.",
    ),
    Entry(
        "E710",
        "count that cannot be",
        "`skip` or `take` is given a negative number, or something that is no whole number.",
        "Give it a whole number from 0 up.",
    ),
    Entry(
        "E711",
        "record does not fit its type",
        "A record lacks a field that its type declares, or has a value there that cannot be read as declared.",
        "Add the field, or mark it as optional with `?`.",
    ),
    Entry(
        "E712",
        "record of a query's file cannot be used",
        "A record of a file that a query loads has too many or too few values, is not UTF-8 or no JSON, or has a value "
        "that is not of the type of its column.",
        "Mend the named record, or declare the types with `load … as T`.",
    ),
    Entry(
        "E713",
        "files of one load have different columns",
        "A query loads several CSV files at once, and a column of one is not in another.",
        "Load the files one by one, and put the rows together with `union all`.",
    ),
    Entry(
        "E714",
        "no such undeclared column",
        "The program of a combine names a column of a looked-up input that no schema declares, and no file has it.",
        "Take the suggested spelling, or remove the column from the program.",
    ),
    # ------------------------------------------------------------ warnings about configuration
    Entry(
        "W002",
        "names that differ in capital letters",
        "Two nodes have names that differ only in capital letters.",
        "Rename one of them.",
    ),
    Entry(
        "W003",
        "nothing reads a node",
        "No node reads the records of a node, or of a branch of a route.",
        "Add an output, or remove the node.",
    ),
    Entry(
        "W004",
        "no output",
        "The pipeline has no output.",
        "Add a node of `type: output`.",
    ),
    Entry(
        "W005",
        "table without effect",
        "`clinker.toml` has a table that nothing reads.",
        "Remove it, or ignore the warning if another tool reads it.",
    ),
    Entry(
        "W017",
        "records fail a validation",
        "Records do not meet a validation whose severity is `warn`. They were written all the same.",
        "Look at the records, or write `severity: error` to send them to the dead letters.",
    ),
    Entry(
        "W027",
        "key without effect",
        "A key has a value, and nothing looks at it: it is about another format, another key, or another kind of run.",
        "Remove the key, or add what it needs.",
    ),
    # ------------------------------------------------------------ warnings about programs
    Entry(
        "W200",
        "nothing is emitted",
        "The program has no `emit`, so it adds no column to its records.",
        "Add an `emit`; ignore the warning if the program is only meant to filter.",
    ),
    Entry(
        "W216",
        "no file matches",
        "A source finds no file to read, and `files.on_no_match` is `warn`.",
        "Correct the pattern, or write `on_no_match: skip`.",
    ),
    # ------------------------------------------------------------ warnings about outputs
    Entry(
        "W302",
        "shuffle without need",
        "`strategy: grace_hash` is written for an input that is small.",
        "Leave `strategy` out.",
    ),
    Entry(
        "W305",
        "join by range alone",
        "The condition of a combine has no equality.",
        "Add an equality if the inputs share a key; else there is nothing to do.",
    ),
    Entry(
        "W306",
        "driver by position",
        "A combine of three or more inputs does not say which of them drives the join.",
        "Write `drive:`.",
    ),
    Entry(
        "W307",
        "file was sorted",
        "A file of a source is not sorted as `sort_order` says. Its records were sorted.",
        "Correct `sort_order`, or sort the file.",
    ),
    Entry(
        "W366",
        "nothing to exclude",
        "`exclude` of an output names a column that the records do not have.",
        "Take the suggested column, or remove the name.",
    ),
    Entry(
        "W408",
        "group larger than a file",
        "A group of a split output does not fit one file, and was written into a larger one.",
        "Allow larger files, choose another `group_key`, or write `oversize_group: allow`.",
    ),
    Entry(
        "W420",
        "old part was changed",
        "A file that an earlier run wrote and this one no longer writes was changed since, and is left as it is.",
        "Remove it if it is no longer needed.",
    ),
    Entry(
        "W421",
        "earlier run was interrupted",
        "An earlier run stopped while it published; this run finished or undid that, or left it alone.",
        "Nothing, or what the message says.",
    ),
    Entry(
        "W430",
        "the next run would read it",
        "An output, or the dead letters, are written where a source of the same pipeline looks for its files.",
        "Write it to another folder, or leave it out with `exclude`.",
    ),
    Entry(
        "W431",
        "file read twice",
        "A source reads a file more than once: it is listed twice, or found under two names.",
        "Remove one of the two, or leave it out with `exclude`.",
    ),
    Entry(
        "W453",
        "key of a broken record was not read",
        "Records failed before their correlation key could be read, so no group is held back for them.",
        "Look at the dead letters; `unreadable_key: stop` publishes nothing in this case.",
    ),
    Entry(
        "W454",
        "letters were replayed before",
        "Dead letters were added to the outputs by an earlier replay, and are not added again.",
        "Nothing: each letter is added once.",
    ),
    Entry(
        "W455",
        "letters that are not fed",
        "Dead letters of a source are not fed, because others are looked up in it: it is read from its own files.",
        "Correct the files of the source, and run the pipeline again.",
    ),
    # ------------------------------------------------------------ record errors
    Entry(
        "X001",
        "value of the wrong type",
        "A value whose type is only known at run time is of a type that the operation does not take.",
        "Test it with `type_of()`, convert it first, or declare the column's type in the schema.",
        "type_mismatch",
    ),
    Entry(
        "X002",
        "division by zero",
        "The divisor of `/`, or of `%` on exact numbers, is zero.",
        "Guard it: `if n == 0 then null else total / n`.",
        "division_by_zero",
    ),
    Entry(
        "X003",
        "conversion failed",
        "A value cannot be read as the type that a `to_...` method asks for.",
        "Clean the text first, pass the date's format, or use the `try_...` form, which gives null instead.",
        "conversion_failed",
    ),
    Entry(
        "X004",
        "number out of range",
        "The result of integer arithmetic does not fit 64 bits, that of decimal arithmetic no decimal, or that of "
        "finite floats no float.",
        "Compute in floats (`.to_float()`) where the last digit does not matter.",
        "integer_overflow",
    ),
    Entry(
        "X005",
        "string too large",
        "A string operation would build a text larger than 10 MiB.",
        "Bound the length with `clamp` before it is used.",
        "string_too_large",
    ),
    Entry(
        "X006",
        "too many records from one",
        "An `emit each` makes more output records from one input record than `max_expansion` allows.",
        "Filter the array first, or raise `max_expansion`.",
        "expansion_limit_exceeded",
    ),
    Entry(
        "X007",
        "duplicate map key",
        "Two computed keys of one map literal turned out to be the same.",
        "Make the keys differ, or use `merge` or `set`, where the later value wins.",
        "duplicate_map_key",
    ),
    Entry(
        "X008",
        "invalid format",
        "A date format asks for something that the value does not have, or is not a format at all.",
        "Use time fields (`%H`, `%M`, `%S`) on a DateTime only, and check the letters after each `%`.",
        "invalid_format",
    ),
    Entry(
        "X009",
        "too much built",
        "The array and map literals and comprehensions of a program build more than 10 MiB for one record.",
        "Filter the array first, or emit its elements as records with `emit each`.",
        "construction_limit_exceeded",
    ),
)

_BY_NAME = {name.lower(): entry for entry in ENTRIES for name in (entry.code, entry.kind) if name}


def lookup(name: str) -> Entry | None:
    """The row of a code (in any case) or of a record error's kind."""
    return _BY_NAME.get(name.strip().lower())


def suggest(name: str) -> str | None:
    """The registered code or kind that looks most like `name`."""
    return nearest(name.strip(), [known for entry in ENTRIES for known in (entry.code, entry.kind) if known], limit=5)


def page(entry: Entry) -> str:
    """The Markdown page of a code."""
    from importlib.resources import files  # not needed to check a program

    return files("clinker_spark.core").joinpath("pages", f"{entry.code}.md").read_text(encoding="utf-8")
