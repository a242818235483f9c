//! The requests sent to both, byte by byte.

/// A request, and how its responses are compared.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) sent: Sent,
    pub(super) crash: Crash,
    /// Clears what necessarily differs.
    pub(super) same: fn(&mut Vec<u8>),
}

/// Which versions a request kills.
#[derive(Clone, Copy)]
pub(super) enum Crash {
    /// Kills these versions.
    Always(&'static [u32]),
    /// These versions read past the end of the request, and die depending on what they find there. The simulation always dies.
    Sometimes(&'static [u32]),
}

impl Crash {
    pub(super) fn affects(self, major: u32) -> bool {
        let (Self::Always(versions) | Self::Sometimes(versions)) = self;
        versions.contains(&major)
    }
}

const NONE: Crash = Crash::Always(&[]);
/// Requests without a payload, and dumps without a path.
const CRASHES_SINCE_NET8: Crash = Crash::Always(&[8, 9, 10]);
const MAY_CRASH_SINCE_NET8: Crash = Crash::Sometimes(&[8, 9, 10]);

/// How the bytes are sent.
#[derive(Clone, Copy)]
pub(super) enum Sent {
    Whole,
    /// Then shuts down writing.
    Ended,
    /// In two pieces.
    Split(usize),
    /// Followed by a file descriptor of /dev/null.
    Handle,
}

pub(super) fn request(code: u16, payload: &[u8]) -> Vec<u8> {
    let size = u16::try_from(20 + payload.len()).unwrap().to_le_bytes();
    [&b"DOTNET_IPC_V1\0"[..], &size, &code.to_be_bytes(), &[0; 2], payload].concat()
}

pub(super) fn number(number: u32) -> Vec<u8> {
    number.to_le_bytes().into()
}

pub(super) fn text(text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    [number(units.len() as u32 / 2), units].concat()
}

/// An array of this many copies of an element.
pub(super) fn array(count: u32, element: &[u8]) -> Vec<u8> {
    [number(count), element.repeat(count as usize)].concat()
}

pub(super) fn provider(level: u32, name: &[u8], arguments: &[u8]) -> Vec<u8> {
    [&[0; 8], number(level).as_slice(), name, arguments].concat()
}

pub(super) const NULL: &[u8] = &[0; 4];

pub(super) fn nothing(_: &mut Vec<u8>) {}

/// Clears the cookie at this offset of the payload.
#[expect(clippy::ptr_arg, reason = "others of its kind shorten the answer")]
fn cookie<const AT: usize>(answer: &mut Vec<u8>) {
    if let Some(bytes) = answer.get_mut(20 + AT..20 + AT + 16) {
        bytes.fill(0);
    }
}

/// Clears the session ID.
#[expect(clippy::ptr_arg, reason = "others of its kind shorten the answer")]
pub(super) fn session(answer: &mut Vec<u8>) {
    if answer.len() >= 28 && answer[17] == 0 {
        answer[20..28].fill(0);
    }
}

/// Removes the size of the environment block that follows, if the announced size is right.
fn environment(answer: &mut Vec<u8>) {
    if answer.len() > 26 && answer[20..24] == number(answer.len() as u32 - 26) {
        answer.truncate(20);
    }
}

/// Removes the text of the dump program, if any.
fn words(answer: &mut Vec<u8>) {
    if answer.len() > 30 {
        answer.truncate(24);
        answer[14..16].fill(0);
    }
}

/// Clears leftover memory after the 6 bytes that were sent.
fn echo(answer: &mut Vec<u8>) {
    if answer.starts_with(b"abcdef") {
        answer.truncate(26);
        answer[6..].fill(0);
    }
}

pub(super) fn cases(major: u32) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name, bytes: Vec<u8>, sent, crash, same| cases.push(Case { name, bytes, sent, crash, same });
    let stop = || request(0x0201, &5_u64.to_le_bytes());
    let mut frame = |name, change: &dyn Fn(&mut Vec<u8>), sent| {
        let mut bytes = stop();
        change(&mut bytes);
        add(name, bytes, sent, NONE, nothing as fn(&mut Vec<u8>));
    };
    frame("a stop of what does not exist", &|_| {}, Sent::Whole);
    frame("magic without its NUL", &|bytes| bytes[13] = b'X', Sent::Whole);
    frame("magic in lower case", &|bytes| bytes[..13].make_ascii_lowercase(), Sent::Whole);
    frame("text of another protocol", &|bytes| *bytes = b"GET / HTTP/1.1\r\n\r\n\r\n\r\n".to_vec(), Sent::Ended);
    frame("size 0", &|bytes| bytes[14] = 0, Sent::Whole);
    frame("size 19", &|bytes| bytes[14] = 19, Sent::Whole);
    frame(
        "a header alone, of size 19",
        &|bytes| {
            bytes[14] = 19;
            bytes.truncate(20);
        },
        Sent::Whole,
    );
    frame("nothing at all", &|bytes| bytes.clear(), Sent::Ended);
    frame("half a header", &|bytes| bytes.truncate(10), Sent::Ended);
    frame("half a payload", &|bytes| bytes.truncate(24), Sent::Ended);
    frame("a header of what has a payload", &|bytes| bytes.truncate(20), Sent::Ended);
    frame(
        "a header of what has a payload, and its size",
        &|bytes| {
            bytes[14] = 20;
            bytes.truncate(20);
        },
        Sent::Whole,
    );
    frame("reserved bytes that are set", &|bytes| bytes[18..20].fill(0xff), Sent::Whole);
    frame("a second message behind the first", &|bytes| bytes.extend_from_slice(&stop()), Sent::Whole);
    frame(
        "a byte more than fields",
        &|bytes| {
            bytes.push(7);
            bytes[14] += 1;
        },
        Sent::Whole,
    );
    for (name, at) in [("a header in two pieces", 10), ("a payload in two pieces", 24)] {
        // 3.1 responds to the first piece. The second could arrive before or after the connection is closed.
        match major {
            3 => frame(name, &|bytes| bytes.truncate(at), Sent::Whole),
            _ => frame(name, &|_| {}, Sent::Split(at)),
        }
    }
    frame("header and payload apart", &|_| {}, Sent::Split(20));

    add("half an id", request(0x0201, &[5, 0, 0, 0]), Sent::Whole, NONE, session);
    for code in [0x0000, 0x0001, 0x0100, 0x0104, 0x0200, 0x0208, 0x0300, 0x0303, 0x0409, 0x04ff, 0x0500, 0xff00, 0xffff] {
        add("an unknown command", request(code, &[]), Sent::Whole, NONE, nothing);
        add("an unknown command with a payload", request(code, &[1, 2, 3, 4]), Sent::Whole, NONE, nothing);
    }
    for (name, code) in [
        ("an empty dump", 0x0101),
        ("an empty dump 3", 0x0103),
        ("an empty session", 0x0202),
        ("an empty session 2", 0x0203),
        ("an empty attachment", 0x0301),
        ("an empty startup profiler", 0x0302),
        ("an empty variable", 0x0403),
        ("an empty perf map", 0x0405),
        ("an empty hook", 0x0407),
    ] {
        add(name, request(code, &[]), Sent::Whole, CRASHES_SINCE_NET8, nothing);
    }
    add("an empty session 5", request(0x0206, &[]), Sent::Whole, Crash::Always(&[10]), nothing);

    add("process info", request(0x0400, &[]), Sent::Whole, NONE, cookie::<8>);
    add("process info 2", request(0x0404, &[]), Sent::Whole, NONE, cookie::<8>);
    add("process info 3", request(0x0408, &[]), Sent::Whole, NONE, cookie::<12>);
    for (name, code) in [
        ("process info, and a payload", 0x0400),
        ("an environment and a payload", 0x0402),
        ("process info 2, and a payload", 0x0404),
        ("process info 3, and a payload", 0x0408),
    ] {
        add(name, request(code, b"abcdef"), Sent::Whole, NONE, echo);
    }
    add("the environment", request(0x0402, &[]), Sent::Whole, NONE, environment);
    add("a resume", request(0x0401, &[]), Sent::Whole, NONE, nothing);
    add("a resume and a payload", request(0x0401, b"abcdef"), Sent::Whole, NONE, nothing);
    add("a perf map that ends", request(0x0406, &[]), Sent::Whole, NONE, nothing);
    for kind in [0, 1, 2, 3, 4, 9] {
        add("a perf map of some kind", request(0x0405, &number(kind)), Sent::Whole, NONE, nothing);
    }
    add("a perf map that ends", request(0x0406, &[]), Sent::Whole, NONE, nothing);

    for (name, variable, value) in [
        ("a variable", text("DN_TOP_A"), text("1")),
        ("a variable of no length", text("DN_TOP_A"), text("")),
        ("a variable that goes", text("DN_TOP_A"), NULL.to_vec()),
        ("a variable that is not there", text("DN_TOP_B"), NULL.to_vec()),
        ("a variable without a name", text(""), text("1")),
        ("a variable with a null name", NULL.to_vec(), text("1")),
        ("a variable with = in its name", text("DN=TOP"), text("1")),
        ("a variable without its NUL", [number(2), b"A\0B\0".to_vec()].concat(), text("1")),
        ("a variable longer than what there is", number(1000), text("1")),
    ] {
        add(name, request(0x0403, &[variable, value].concat()), Sent::Whole, NONE, nothing);
    }
    add("a variable without a value", request(0x0403, &text("DN_TOP_A")), Sent::Whole, MAY_CRASH_SINCE_NET8, nothing);

    let dump = |code, path: &[u8], kind, flags| request(code, &[path, &number(kind), &number(flags)].concat());
    for (code, path) in [(0x0101, "/no/such/folder/core"), (0x0102, "/no/such/folder/core"), (0x0103, "/no/such/folder/core")] {
        add("a dump into a folder that is not there", dump(code, &text(path), 4, 0), Sent::Whole, NONE, words);
        add("a dump of no kind", dump(code, &text(path), 9, 0), Sent::Whole, NONE, nothing);
        add("a dump without its NUL", request(code, &[number(1), vec![1; 10]].concat()), Sent::Whole, NONE, nothing);
    }
    add("a dump to nowhere", dump(0x0101, NULL, 1, 0), Sent::Whole, Crash::Always(&[3, 8, 9, 10]), nothing);
    add("a dump 3 to nowhere", dump(0x0103, NULL, 1, 0), Sent::Whole, CRASHES_SINCE_NET8, nothing);

    let class = [7; 16];
    let attachment = |data: &[u8]| request(0x0301, &[&number(1000), &class[..], &text("/no/such.so"), data].concat());
    add("a profiler that is not there", attachment(NULL), Sent::Whole, NONE, nothing);
    add("a profiler that is not there, and its data", attachment(&[3, 0, 0, 0, 1, 2, 3]), Sent::Whole, NONE, nothing);
    add("a profiler with more data than it says", attachment(&[1, 0, 0, 0, 1, 2, 3]), Sent::Whole, NONE, nothing);
    add("a profiler with less data than it says", attachment(&[9, 0, 0, 0, 1, 2, 3]), Sent::Whole, NONE, nothing);
    add("half a profiler", request(0x0301, &[&number(1000), &class[..9]].concat()), Sent::Whole, MAY_CRASH_SINCE_NET8, nothing);
    add("a profiler without data", attachment(&[]), Sent::Whole, NONE, nothing);
    add("a profiler without a path", request(0x0301, &[&number(1000), &class[..]].concat()), Sent::Whole, MAY_CRASH_SINCE_NET8, nothing);
    add("half a startup profiler", request(0x0302, &class[..9]), Sent::Whole, MAY_CRASH_SINCE_NET8, nothing);
    add("a startup profiler without a path", request(0x0302, &class), Sent::Whole, MAY_CRASH_SINCE_NET8, nothing);
    add(
        "a startup profiler of a program that runs",
        request(0x0302, &[&class[..], &text("/no/such.so")].concat()),
        Sent::Whole,
        NONE,
        nothing,
    );

    let hook = request(0x0407, &text("/no/such.dll"));
    add("a hook that is not there", hook, Sent::Whole, Crash::Always(&[9, 10]), nothing);
    add("a hook without its NUL", request(0x0407, &[number(2), b"A\0B\0".to_vec()].concat()), Sent::Whole, NONE, nothing);

    let good = provider(5, &text("DnTop-Unused"), NULL);
    let collect = |code: u16, buffer, format, providers: Vec<u8>| {
        let switches: &[u8] = match code {
            0x0202 => &[],
            0x0203 => &[0],
            0x0204 => &[0, 1],
            _ => &[0, 0, 0, 0, 0, 0, 0, 0, 1],
        };
        request(code, &[number(buffer), number(format), switches.to_vec(), providers].concat())
    };
    for code in [0x0202, 0x0203, 0x0204, 0x0205] {
        // Commands unknown to .NET 8 are not parsed by it.
        let crash = Crash::Always(if code <= 0x0203 { &[8, 9] } else { &[9] });
        add("a session of no provider", collect(code, 1, 1, array(0, &[])), Sent::Whole, NONE, session);
        add("a session without a buffer", collect(code, 0, 1, array(1, &good)), Sent::Whole, crash, nothing);
        add("a session of format 2", collect(code, 1, 2, array(1, &good)), Sent::Whole, crash, nothing);
        add("a session of 1001 providers", collect(code, 1, 1, array(1001, &provider(5, &text("P"), NULL))), Sent::Whole, crash, nothing);
        for (name, bad) in [
            ("a session of level 6", provider(6, &text("P"), NULL)),
            ("a session of a provider without a name", provider(5, &text(""), NULL)),
            ("a session of a provider with a null name", provider(5, NULL, NULL)),
            ("a session of a provider without its NUL", provider(5, &[2, 0, 0, 0, 65, 0, 66, 0], NULL)),
            ("a session of half a provider", vec![0; 10]),
        ] {
            add(name, collect(code, 1, 1, array(1, &bad)), Sent::Whole, NONE, session);
        }
    }
    if major < 10 {
        return cases;
    }

    let mut add = |name, bytes: Vec<u8>, sent| cases.push(Case { name, bytes, sent, crash: NONE, same: nothing });
    let all: &[u8] = &[0; 5];
    let stream = |buffer, format, providers: Vec<u8>| {
        request(0x0206, &[number(0), number(buffer), number(format), vec![0; 8], vec![1], providers].concat())
    };
    let filtered = |filter: &[u8]| array(1, &[&good, filter].concat());
    add("a session 5 without a buffer", stream(0, 1, filtered(all)), Sent::Whole);
    add("a session 5 of format 2", stream(1, 2, filtered(all)), Sent::Whole);
    add("a session 5 of no provider", stream(1, 1, array(0, &[])), Sent::Whole);
    add("a session 5 of no kind", request(0x0206, &number(2)), Sent::Whole);
    let events = |tracepoints: &[u8]| request(0x0206, &[number(1), vec![0; 8], filtered(&[all, tracepoints].concat())].concat());
    let set = |name: &str, ids: &[u32]| [text(name), number(ids.len() as u32), ids.iter().flat_map(|id| number(*id)).collect()].concat();
    add("user events for no tracepoint", events(&[NULL, &number(0)].concat()), Sent::Ended);
    add("user events for a tracepoint without events", events(&[NULL, &number(1), &set("Set", &[])].concat()), Sent::Ended);
    add("user events for a tracepoint without a name", events(&[NULL, &number(1), &set("", &[1])].concat()), Sent::Ended);
    let good = events(&[text("DnTop"), number(0)].concat());
    add("user events and a byte", [&good[..], &[0]].concat(), Sent::Whole);
    add("user events and the end", good.clone(), Sent::Ended);
    add("user events and some other file", good, Sent::Handle);
    cases
}
