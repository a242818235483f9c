//! Enums with a list of their variants.

/// Declares an enum without data, with `ALL`, the list of its variants in declaration order, which cannot omit any. If each has a text, a function
/// that returns it is named below the enum.
macro_rules! listed {
    (
        $(#[$attribute:meta])* $visibility:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident $(= $number:literal)?,)* }
    ) => {
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$doc])* $variant $(= $number)?,)*
        }

        impl $name {
            /// All of them, in the order of their declaration.
            $visibility const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];
        }
    };
    (
        $(#[$attribute:meta])* $visibility:vis enum $name:ident {
            $($(#[$doc:meta])* $variant:ident $(= $number:literal)? => $text:literal,)*
        }
        $(#[$about:meta])* fn $text_of:ident
    ) => {
        listed! {
            $(#[$attribute])*
            $visibility enum $name { $($(#[$doc])* $variant $(= $number)?,)* }
        }

        impl $name {
            $(#[$about])*
            $visibility fn $text_of(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}
