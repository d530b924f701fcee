# Limits of sizes in the library's sources: lines of a file, and data members of a class (counted by text: static members and
# members of bases do not count, an anonymous union is a class of its own). Prints what exceeds them and exits with 1.
# Variables: lines, members; known: a pattern of classes that may have more members.

BEGIN {
    bad = 0
    starts_no_member = "^(using|friend|typedef|static|template|enum|class|struct|union|extern|operator|namespace|inline|constinit)[^A-Za-z0-9_]"
    ends_no_member = "(^|[^A-Za-z0-9_])(const|noexcept|override|final|default|delete|requires)$"
}

FNR == 1 {
    report_file()
    file = FILENAME
    depth = 0
    statement = ""
    in_comment = 0
}

{
    length_of_file = FNR
    line = $0
    if (line ~ /^[ \t]*#/) {
        next
    }
    gsub(/\\./, "", line)
    gsub(/"[^"]*"/, "\"\"", line)
    gsub(/'[{};]'/, "0", line)
    sub(/\/\/.*/, "", line)
    read(line " ")
}

END {
    report_file()
    exit bad
}

function report_file() {
    if (file != "" && length_of_file > lines) {
        printf "%s: %d lines, more than %d\n", file, length_of_file, lines
        bad = 1
    }
}

function read(text,    i, c) {
    for (i = 1; i <= length(text); ++i) {
        c = substr(text, i, 1)
        if (c == "{") {
            open_brace()
        } else if (c == "}") {
            close_brace()
        } else if (c == ";") {
            if (kind[depth] == "class" && is_member(statement)) {
                ++count[depth]
            }
            statement = ""
        } else {
            statement = statement c
        }
    }
}

function trim(text) {
    gsub(/[ \t]+/, " ", text)
    sub(/^ /, "", text)
    sub(/ $/, "", text)
    while (sub(/^(public|private|protected) ?: ?/, "", text) || sub(/^\[\[[^\]]*\]\] ?/, "", text) || sub(/^alignas\([^()]*\) ?/, "", text)) {
    }
    return text
}

function is_member(text) {
    text = trim(text)
    if (text ~ / = /) {
        sub(/ = .*/, "", text)
        if (gsub(/\(/, "(", text) != gsub(/\)/, ")", text)) {
            return 0 # a default argument
        }
    }
    sub(/ : [0-9]+$/, "", text)
    sub(/(\[[^\]]*\])+$/, "", text)
    return text != "" && text !~ starts_no_member && text !~ ends_no_member && (text ~ /[A-Za-z0-9_]$/ || text ~ /\(\*[a-z_]+\)\(.*\)( noexcept)?$/)
}

# A brace begins a class, an initialiser of a member (the statement continues after it), or anything else.
function open_brace(    text) {
    text = trim(statement)
    sub(/^template ?<.*> ?(class|struct|union)/, "class", text)
    ++depth
    if (text ~ /^(class|struct|union)( |$)/ && text !~ /\)$/) {
        kind[depth] = "class"
        name[depth] = text
        line_of[depth] = FNR
        count[depth] = 0
        statement = ""
    } else if (kind[depth - 1] == "class" && is_member(statement) && text !~ /\)$/) {
        kind[depth] = "initialiser"
        outside[depth] = statement
        statement = ""
    } else {
        kind[depth] = "other"
        statement = ""
    }
}

function close_brace() {
    statement = ""
    if (kind[depth] == "class") {
        if (count[depth] > members && (known == "" || name[depth] !~ known)) {
            printf "%s:%d: %d data members, more than %d: %s\n", file, line_of[depth], count[depth], members, name[depth]
            bad = 1
        }
        if (name[depth] ~ /^union$/ || name[depth] ~ /^struct$/) {
            statement = " "
        }
    } else if (kind[depth] == "initialiser") {
        statement = outside[depth]
    }
    --depth
}
