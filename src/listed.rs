//! Enums with a list of their variants.

/// Declares an enum without data, with `ALL`, the list of its variants in declaration order, which cannot omit any. A value of each,
/// such as a name, is returned by a function declared below the enum.
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
            $($(#[$doc:meta])* $variant:ident $(= $number:literal)? => $value:expr,)*
        }
        $(#[$about:meta])* $value_visibility:vis fn $value_of:ident(self) -> $type:ty;
    ) => {
        listed! {
            $(#[$attribute])*
            $visibility enum $name { $($(#[$doc])* $variant $(= $number)?,)* }
        }

        impl $name {
            $(#[$about])*
            $value_visibility const fn $value_of(self) -> $type {
                match self {
                    $(Self::$variant => $value,)*
                }
            }
        }
    };
}
